use super::*;

fn at(call: i64, from: usize) -> Blocked {
    Blocked {
        call: Some(call),
        first: 3,
        stack_pointer: 0x7ffd,
        from,
    }
}

const ALL: Spares = Spares { in_use: 1, most: 1 };

#[test]
fn the_place_of_most_is_named() {
    let places = [
        at(libc::SYS_read, 8),
        at(libc::SYS_epoll_wait, 16),
        at(libc::SYS_epoll_wait, 16),
    ];
    let text = text(3, &places, 1_200_000_000, &ALL);
    let head = "all 3 carriers have been blocked in the kernel for 1.2 s";
    assert!(text.starts_with(head), "{text}");
    assert!(
        text.contains("2 of them in epoll_wait, called from 0x10"),
        "{text}"
    );
    assert!(text.contains("PIRN_SPARE_CARRIERS=1"), "{text}");
}

#[test]
fn threads_that_compute_are_counted() {
    let text = text(3, &[at(libc::SYS_read, 8)], 1_000_000_000, &ALL);
    let counts = "1 blocked in the kernel, 2 computing";
    assert!(text.contains(counts), "{text}");
    let text = super::text(2, &[], 1_000_000_000, &ALL);
    assert!(!text.contains("System calls"), "{text}");
}

#[test]
fn lack_of_memory_is_another_reason() {
    let none = Spares { in_use: 0, most: 4 };
    let text = text(1, &[], 1_000_000_000, &none);
    assert!(text.contains("could be started"), "{text}");
}
