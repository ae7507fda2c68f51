//! x86-64.

use super::{Processor, ThreadPointer};

pub const THIS: Processor = Processor::X86_64;

/// The bit of FSGSBASE in `AT_HWCAP2`, which the kernel sets if programs may use it.
const HWCAP2_FSGSBASE: u64 = 1 << 1;

/// Returns how programs set the thread pointer: `flags`, the features of the processor in
/// `/proc/cpuinfo`; `hwcap2`, the entry `AT_HWCAP2` of the auxiliary vector.
pub fn thread_pointer(flags: Option<&str>, hwcap2: Option<u64>) -> ThreadPointer {
    let has_it = flags.map(|flags| flags.split(' ').any(|flag| flag == "fsgsbase"));
    match (has_it, hwcap2.map(|bits| bits & HWCAP2_FSGSBASE != 0)) {
        (_, Some(true)) => ThreadPointer::Fsgsbase,
        (Some(true), Some(false)) => ThreadPointer::Withheld,
        (Some(false), _) => ThreadPointer::Lacking,
        (_, None) | (None, Some(false)) => ThreadPointer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_processor_must_have_fsgsbase() {
        let (with, without) = (Some("fpu fsgsbase avx"), Some("fpu avx"));
        assert_eq!(thread_pointer(with, Some(3)), ThreadPointer::Fsgsbase);
        assert_eq!(thread_pointer(None, Some(2)), ThreadPointer::Fsgsbase);
        assert_eq!(thread_pointer(with, Some(1)), ThreadPointer::Withheld);
        assert_eq!(thread_pointer(without, Some(0)), ThreadPointer::Lacking);
        assert_eq!(thread_pointer(without, None), ThreadPointer::Lacking);
        assert_eq!(thread_pointer(with, None), ThreadPointer::Unknown);
        assert_eq!(thread_pointer(None, Some(0)), ThreadPointer::Unknown);
    }
}
