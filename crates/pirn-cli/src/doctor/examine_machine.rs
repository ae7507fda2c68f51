//! Conclusions from the facts about a machine.

use super::finding::Finding;
use super::machine::{Libc, Machine};
use crate::arch::{THIS, ThreadPointer};

/// The oldest supported kernel, the first that lets programs use FSGSBASE.
const KERNEL: (u32, u32) = (5, 9);
/// The first kernel with guard markers (`MADV_GUARD_INSTALL`).
const KERNEL_WITH_MARKERS: (u32, u32) = (6, 13);
/// The oldest supported GNU C library.
const GLIBC: (u32, u32) = (2, 34);
/// The number of mappings left to the rest of the program, and the number that a stack takes.
const OTHER_MAPPINGS: u64 = 4096;
const MAPPINGS_PER_STACK: u64 = 2;
/// Bytes of a parked thread beside a page of stack: its share of a page table.
const BYTES_BESIDE_PAGE: u64 = 704;
/// The page of most kernels.
const PAGE: u64 = 4096;
/// Address space of the default stack, with its guard.
const ADDRESSES_PER_THREAD: u64 = 260 << 10;
/// OS threads that the runtime may start beside its carriers: spare carriers, and the pool.
const OTHER_THREADS: u64 = 16 + 256 + 8;
/// Open files below which servers run into their limit.
const FEW_FILES: u64 = 10_000;

/// Returns all findings about a machine.
pub fn examine(machine: &Machine) -> Vec<Finding> {
    let version = machine.kernel.as_deref().and_then(version);
    [
        Some(processor(machine)),
        Some(kernel(machine, version)),
        Some(libc(machine)),
        Some(guards(machine, version)),
        files(machine),
        memory(machine),
        processors(machine),
        overcommit(machine),
        address_space(machine),
        os_threads(machine),
        filter(machine),
        preload(machine),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the finding about the trial.
pub fn trial(result: Result<(), String>) -> Finding {
    const SUBJECT: &str = "trial";
    match result {
        Ok(()) => Finding::ok(
            SUBJECT,
            "a virtual thread was spawned, parked in a read, woken and joined",
        ),
        Err(error) => Finding::bad(
            SUBJECT,
            error,
            "the lines above may say why; if not, please report this",
        ),
    }
}

fn processor(machine: &Machine) -> Finding {
    const SUBJECT: &str = "processor";
    let name = machine.processor.as_deref().unwrap_or("unknown");
    let architecture = THIS.name();
    match machine.thread_pointer {
        ThreadPointer::Instruction => Finding::ok(SUBJECT, format!("{name}, {architecture}")),
        ThreadPointer::Fsgsbase => {
            Finding::ok(SUBJECT, format!("{name}, {architecture} with FSGSBASE"))
        }
        ThreadPointer::Withheld => Finding::warn(
            SUBJECT,
            format!(
                "{name} has FSGSBASE, but the kernel does not let programs use it: each switch \
                 makes a system call"
            ),
            "run Linux 5.9 or later, without `nofsgsbase` in its command line; valgrind and some \
             emulators hide it as well",
        ),
        ThreadPointer::Lacking => Finding::warn(
            SUBJECT,
            format!("{name} has no FSGSBASE: each switch makes a system call"),
            "use Intel Ivy Bridge, AMD Steamroller or later; in a virtual machine, pass the \
             processor's features through (`-cpu host`)",
        ),
        ThreadPointer::Unknown => Finding::warn(
            SUBJECT,
            format!("{name}; cannot tell whether it has FSGSBASE"),
            "mount /proc",
        ),
    }
}

fn kernel(machine: &Machine, version: Option<(u32, u32)>) -> Finding {
    const SUBJECT: &str = "kernel";
    let name = format!("Linux {}", machine.kernel.as_deref().unwrap_or("unknown"));
    match version {
        Some(version) if version >= KERNEL => Finding::ok(SUBJECT, name),
        Some(_) => Finding::bad(SUBJECT, name, "Linux 5.9 or later is needed"),
        None => Finding::warn(
            SUBJECT,
            name,
            "cannot tell its version; 5.9 or later is needed",
        ),
    }
}

fn libc(machine: &Machine) -> Finding {
    const SUBJECT: &str = "C library";
    match machine.libc {
        Libc::Gnu(major, minor) if (major, minor) >= GLIBC => {
            Finding::ok(SUBJECT, format!("glibc {major}.{minor}"))
        }
        Libc::Gnu(major, minor) => Finding::bad(
            SUBJECT,
            format!("glibc {major}.{minor}"),
            "glibc 2.34 or later is needed",
        ),
        Libc::Unknown => Finding::warn(
            SUBJECT,
            "unknown",
            "glibc 2.34 or later is needed; other C libraries do not work",
        ),
    }
}

/// Returns the finding about guard markers, or about the mappings that guards take without them.
fn guards(machine: &Machine, version: Option<(u32, u32)>) -> Finding {
    const SUBJECT: &str = "guard pages";
    if version >= Some(KERNEL_WITH_MARKERS) {
        return Finding::ok(SUBJECT, "by markers: stacks take no memory mappings");
    }
    let mappings = machine.mappings.unwrap_or(65_530);
    let threads = mappings.saturating_sub(OTHER_MAPPINGS) / MAPPINGS_PER_STACK;
    Finding::warn(
        SUBJECT,
        format!(
            "before Linux 6.13 each stack takes two memory mappings: vm.max_map_count is \
             {mappings}, which allows {} virtual threads",
            grouped(threads)
        ),
        "sysctl -w vm.max_map_count=2000000 for 1,000,000 of them",
    )
}

fn files(machine: &Machine) -> Option<Finding> {
    const SUBJECT: &str = "open files";
    let soft = machine.files_soft?;
    let hard = machine.files_hard.or(machine.files_ceiling).unwrap_or(soft);
    let found = format!("{} per process, {} at most", grouped(soft), grouped(hard));
    if soft >= FEW_FILES {
        return Some(Finding::ok(SUBJECT, found));
    }
    let ceiling = machine.files_ceiling.unwrap_or(1 << 20);
    let advice = if hard > soft {
        format!(
            "a connection takes one each: `ulimit -n {hard}` before the program, or LimitNOFILE= in its unit"
        )
    } else {
        format!(
            "a connection takes one each: raise the hard limit (limits.conf, LimitNOFILE=), up to \
             fs.nr_open, which is {}",
            grouped(ceiling)
        )
    };
    Some(Finding::warn(SUBJECT, found, &advice))
}

fn memory(machine: &Machine) -> Option<Finding> {
    const SUBJECT: &str = "memory";
    let available = machine.memory_available;
    let cgroup = machine.memory_of_cgroup;
    let least = available.into_iter().chain(cgroup).min()?;
    let page = machine.page.unwrap_or(PAGE);
    let threads = grouped(least / (page + BYTES_BESIDE_PAGE) / 1000 * 1000);
    let mut found = match available {
        Some(bytes) => format!("{} available", size(bytes)),
        None => "unknown".into(),
    };
    if let Some(bytes) = cgroup {
        found += &format!(", the cgroup allows {}", size(bytes));
    }
    found += &format!(": room for some {threads} parked threads");
    if page != PAGE {
        found += &format!(", of a page each, {} KiB", page >> 10);
    }
    if least >= 256 << 20 {
        return Some(Finding::ok(SUBJECT, found));
    }
    let advice = "`spawn` fails when less than 64 MiB is left; raise the cgroup's memory.max, or free \
                  some";
    Some(Finding::warn(SUBJECT, found, advice))
}

fn processors(machine: &Machine) -> Option<Finding> {
    const SUBJECT: &str = "processors";
    let online = machine.processors?;
    let found = format!("{online} online");
    let Some(share) = machine
        .processors_of_cgroup
        .filter(|&share| share < online * 1000)
    else {
        return Some(Finding::ok(SUBJECT, found));
    };
    let found = format!(
        "{found}, the cgroup allows the time of {}.{}",
        share / 1000,
        share % 1000 / 100
    );
    if share >= 1000 {
        return Some(Finding::ok(SUBJECT, found));
    }
    let advice = "below 1 all carriers pause together when the quota is used up; raise cpu.max";
    Some(Finding::warn(SUBJECT, found, advice))
}

fn overcommit(machine: &Machine) -> Option<Finding> {
    const SUBJECT: &str = "overcommit";
    match machine.overcommit? {
        2 => Some(Finding::warn(
            SUBJECT,
            "vm.overcommit_memory is 2: the whole of each stack counts, used or not",
            "set vm.overcommit_memory to 0 or 1, or make stacks small (PIRN_STACK_SIZE=64K)",
        )),
        mode => Some(Finding::ok(
            SUBJECT,
            format!("vm.overcommit_memory is {mode}: stacks count where they are used"),
        )),
    }
}

fn address_space(machine: &Machine) -> Option<Finding> {
    let limit = machine.address_space?;
    let threads = grouped(limit / ADDRESSES_PER_THREAD);
    Some(Finding::warn(
        "address space",
        format!(
            "limited to {}, which is enough for fewer than {threads} stacks",
            size(limit)
        ),
        "`ulimit -v unlimited`, or smaller stacks (PIRN_STACK_SIZE=64K)",
    ))
}

fn os_threads(machine: &Machine) -> Option<Finding> {
    const SUBJECT: &str = "OS threads";
    let limits = [machine.threads_of_user, machine.threads_of_cgroup];
    let least = limits.into_iter().flatten().min()?;
    let found = format!("{} may be started", grouped(least));
    if least >= machine.processors.unwrap_or(1) + OTHER_THREADS {
        return Some(Finding::ok(SUBJECT, found));
    }
    let advice = "carriers, spare carriers and the pool for files may need more: raise `ulimit -u` or the \
                  cgroup's pids.max, or lower PIRN_MAX_BLOCKING_THREADS";
    Some(Finding::warn(SUBJECT, found, advice))
}

fn filter(machine: &Machine) -> Option<Finding> {
    machine.filtered.then(|| {
        Finding::ok(
            "system calls",
            "filtered by seccomp, as in containers; the trial shows whether too much is",
        )
    })
}

fn preload(machine: &Machine) -> Option<Finding> {
    let preload = machine.preload.as_deref()?;
    Some(Finding::warn(
        "preloaded",
        format!("LD_PRELOAD={preload}"),
        "allocators (mimalloc, jemalloc) and tools that replace blocking functions may keep virtual \
         threads from starting; link allocators into the program, in pirn::OnCarrier",
    ))
}

/// Returns the first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Returns a number with commas between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / (1 << 30) as f64),
    }
}

#[cfg(test)]
mod tests;
