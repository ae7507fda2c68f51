use super::*;

struct Item {
    number: u32,
    links: Links<Item>,
}

impl Linked for Item {
    fn links(&self) -> &Links<Item> {
        &self.links
    }
}

fn items<const N: usize>() -> [Item; N] {
    core::array::from_fn(|number| Item {
        number: number as u32,
        links: Links::new(),
    })
}

fn list_of(items: &[Item]) -> List<Item> {
    let mut list = List::new();
    for item in items {
        // SAFETY: the tests keep their items until the end.
        unsafe { list.append(item) };
    }
    list
}

fn numbers(list: &List<Item>) -> Vec<u32> {
    list.iter().map(|item| item.number).collect()
}

#[test]
fn all_are_in_order_of_arrival_whichever_leaves() {
    let items = items::<5>();
    let mut list = list_of(&items);
    assert_eq!(numbers(&list), [0, 1, 2, 3, 4]);
    for (leaving, left) in [(0, vec![1, 2, 3, 4]), (2, vec![1, 3, 4]), (4, vec![1, 3])] {
        // SAFETY: in this list, or, the second time, in none.
        unsafe {
            list.remove(&items[leaving]);
            list.remove(&items[leaving]);
        }
        assert_eq!(numbers(&list), left);
    }
    // SAFETY: in no list any more.
    unsafe { list.append(&items[0]) };
    assert_eq!(numbers(&list), [1, 3, 0]);
    assert_eq!(list.take_first().map(|item| item.number), Some(1));
    while list.take_first().is_some() {}
    assert!(list.is_empty() && numbers(&list).is_empty());
}

#[test]
fn a_walk_may_take_out_whom_it_has_come_to() {
    let items = items::<6>();
    let mut list = list_of(&items);
    let mut visited = Vec::new();
    let stopped_at = list.walk(|list, item| {
        visited.push(item.number);
        if item.number % 2 == 0 {
            // SAFETY: in this list.
            unsafe { list.remove(item) };
        }
        match item.number {
            4 => ControlFlow::Break(4),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!(stopped_at, ControlFlow::Break(4));
    assert_eq!(visited, [0, 1, 2, 3, 4]);
    assert_eq!(numbers(&list), [1, 3, 5]);
}
