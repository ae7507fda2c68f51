use super::*;

const NOTES: usize = 4096;
const MEMORY: usize = 8192;

/// Returns a note of the name "CORE".
fn note(kind: u32, contents: &[u8]) -> Vec<u8> {
    let head = [5, contents.len() as u32, kind].map(u32::to_le_bytes);
    [&head.concat(), b"CORE\0\0\0\0" as &[u8], contents].concat()
}

/// Returns a program header.
fn program(kind: u32, offset: usize, address: u64, len: usize) -> [u8; PROGRAM_HEADER] {
    let mut header = [0; PROGRAM_HEADER];
    header[..4].copy_from_slice(&kind.to_le_bytes());
    header[8..16].copy_from_slice(&offset.to_le_bytes());
    header[16..24].copy_from_slice(&address.to_le_bytes());
    header[32..40].copy_from_slice(&len.to_le_bytes());
    header
}

/// The number of a thread, and a value for each of its registers.
fn status(tid: u32) -> Vec<u8> {
    let mut status = vec![0; REGISTERS];
    status[PID..PID + 4].copy_from_slice(&tid.to_le_bytes());
    let words = (0..arch::REGISTERS / 8).flat_map(|index| value(tid, 8 * index).to_le_bytes());
    status.extend(words);
    status.extend([0; 8]); // whether the floating point registers are there
    status
}

/// Returns what is in the register at this place.
fn value(tid: u32, at: usize) -> u64 {
    u64::from(tid) << 32 | at as u64
}

/// Returns a core file of this processor, of two threads and the memory from an address on.
fn core(address: u64, memory: &[u8]) -> Vec<u8> {
    let notes = [
        note(NT_PRSTATUS, &status(7)),
        note(NT_PRSTATUS, &status(8)),
        note(0x202, b"other"), // of a kind that matters to nobody, and of an odd length
    ]
    .concat();
    let mut file = vec![0; ELF_HEADER];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[16] = 4;
    file[18..20].copy_from_slice(&arch::MACHINE.to_le_bytes());
    file[32] = ELF_HEADER as u8;
    file[56] = 2;
    file.extend(program(PT_NOTE, NOTES, 0, notes.len()));
    file.extend(program(PT_LOAD, MEMORY, address, memory.len()));
    file.resize(NOTES, 0);
    file.extend(notes);
    file.resize(MEMORY, 0);
    file.extend(memory);
    file
}

#[test]
fn threads_have_their_registers_and_memory_its_addresses() {
    let folder = pirn_testing::Folder::new("built-core-file");
    let path = folder.path("core");
    std::fs::write(&path, core(0xffff_8000_1000, b"a stack")).unwrap();
    let core = CoreFile::open(path.as_ref()).unwrap();
    assert_eq!(core.pid, 7);
    let seen = core
        .threads
        .iter()
        .map(|it| (it.tid, [it.pc, it.sp, it.bp, it.lr]));
    let expected = [7, 8].map(|tid| {
        let [pc, sp, bp] = [arch::PC, arch::SP, arch::BP].map(|at| value(tid, at));
        (tid, [pc, sp, bp, arch::LR.map_or(0, |at| value(tid, at))])
    });
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    let mut bytes = [0; 5];
    core.read(0xffff_8000_1002, &mut bytes).unwrap();
    assert_eq!(&bytes, b"stack");
    assert!(core.read(0xffff_8000_1003, &mut bytes).is_err());
}

#[test]
fn a_core_file_of_another_processor_is_refused() {
    let folder = pirn_testing::Folder::new("other-core-file");
    let path = folder.path("core");
    let mut core = core(0, b"");
    core[18] ^= 1;
    std::fs::write(&path, core).unwrap();
    let error = CoreFile::open(path.as_ref()).err().unwrap().to_string();
    assert!(error.contains(std::env::consts::ARCH), "{error}");
}
