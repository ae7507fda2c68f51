-- Prints what wrk has measured as one line of JSON. Its own times are in microseconds.
function done(summary, latency, requests)
   local errors = summary.errors
   print(string.format(
      '{"duration_us":%d,"requests":%d,"p50_ms":%.4f,"p99_ms":%.4f,"non_2xx":%d,' ..
      '"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d}}',
      summary.duration, summary.requests, latency:percentile(50) / 1000,
      latency:percentile(99) / 1000, errors.status,
      errors.connect, errors.read, errors.write, errors.timeout))
end
