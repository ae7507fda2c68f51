// Numbers, sizes and times in words. Everything returns text.

/** 1,234,567 */
export function count(number) {
  return Math.round(number).toLocaleString("en-US");
}

/** At most four characters and a unit: 12, 1.2k, 345k, 1.2M. */
export function short(number) {
  const size = Math.abs(number);
  if (size >= 1e9) return `${digits(number / 1e9)}G`;
  if (size >= 1e6) return `${digits(number / 1e6)}M`;
  if (size >= 1e4) return `${digits(number / 1e3)}k`;
  if (size >= 1e3) return count(number);
  if (size >= 10 || Number.isInteger(number)) return `${Math.round(number)}`;
  return number.toFixed(1);
}

function digits(number) {
  return Math.abs(number) >= 100 ? number.toFixed(0) : number.toFixed(1);
}

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(number) >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 || number >= 100 ? number.toFixed(0) : number.toFixed(1)} ${units[unit]}`;
}

/** A time in nanoseconds: 850 ns, 12 µs, 3.4 ms. */
export function nanos(number) {
  if (number < 1e3) return `${Math.round(number)} ns`;
  if (number < 1e6) return `${digits(number / 1e3)} µs`;
  if (number < 1e9) return `${digits(number / 1e6)} ms`;
  return `${digits(number / 1e9)} s`;
}

/** A duration in seconds: 0.4 s, 12 s, 3 min 5 s, 2 h 7 min, 3 d 4 h. */
export function seconds(number) {
  const whole = Math.floor(number);
  if (number < 10) return `${number.toFixed(1)} s`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor(whole / 3600) % 24} h`;
}

/** The time of day of milliseconds since 1970: 14:03:07. */
export function clock(millis) {
  return new Date(millis).toLocaleTimeString("en-GB");
}

/** 1 thread, 2 threads */
export function counted(number, what) {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

/** A text that the filter's pattern language takes as it is, as far as it can. */
export function pattern(text) {
  return text.replace(/[,|*?\\]/g, "?").replace(/[^\x20-\x7e]/g, "*");
}
