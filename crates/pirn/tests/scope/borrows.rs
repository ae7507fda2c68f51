//! Borrows of subtasks: from the owner, from its callers, and for their results and errors.

use std::io;

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError};

/// Borrows from the caller by a parameter, whatever error subtasks have.
fn length<E: Send>(text: &str) -> Result<usize, JoinError<E>> {
    pirn::scope::open(|s| {
        let length = s.fork(|| Ok(text.len()));
        let all = s.join()?;
        Ok(length.get(&all))
    })
}

fn length_or_static(text: &str) -> Result<usize, JoinError<&'static str>> {
    pirn::scope::open(|s| {
        let length = s.fork(|| Ok(text.len()));
        s.fork(|| Err::<(), _>("static"));
        let all = s.join()?;
        Ok(length.get(&all))
    })
}

fn length_or_box(text: &str) -> Result<usize, JoinError<Box<dyn std::error::Error + Send>>> {
    scope::open_with(scope::any_successful(), |s| {
        s.fork(|| Ok(text.len()));
        Ok(s.join()?.into_output())
    })
}

/// Results and errors that live as long as the borrowed text.
fn halves<'a>(text: &'a str, at: &usize) -> Result<(&'a str, &'a str), JoinError<&'a str>> {
    Builder::new().open(|s| {
        let front = s.fork(|| text.get(..*at).ok_or(text));
        let back = s.fork(|| text.get(*at..).ok_or(text));
        let all = s.join()?;
        Ok((front.get(&all), back.get(&all)))
    })
}

fn first<'a, T: Sync>(all: &'a [T], fits: &(impl Fn(&T) -> bool + Sync)) -> Option<&'a T> {
    let found = scope::any(
        all.iter()
            .map(|item| move || fits(item).then_some(item).ok_or(())),
    );
    found.ok()
}

#[watched]
fn borrows_from_the_owners_callers() {
    everywhere(|| {
        let text = String::from("weft");
        assert_eq!(length::<io::Error>(&text).unwrap(), 4);
        assert_eq!(length::<Oops>(&text).unwrap(), 4);
        assert!(matches!(
            length_or_static(&text),
            Err(JoinError::Failed("static"))
        ));
        assert_eq!(length_or_box(&text).unwrap(), 4);
        assert_eq!(halves(&text, &1).unwrap(), ("w", "eft"));
        assert!(matches!(halves(&text, &7), Err(JoinError::Failed("weft"))));
        assert_eq!(first(&[1, 2, 3], &|n| *n == 2), Some(&2));
    });
}

#[watched]
fn borrows_from_the_owner() {
    everywhere(|| {
        let words = ["warp".to_string(), "weft".to_string()];
        let mut count = 0;
        let mut list = Vec::new();
        let longest = Builder::new().open::<Oops, _, _>(|s| {
            s.fork(|| {
                list.push("mutably"); // each by one
                Ok(())
            });
            s.fork(|| {
                count += words.len();
                Ok(())
            });
            let longest = s.fork(|| Ok(words.iter().max().unwrap()));
            let all = s.join()?;
            Ok(longest.get(&all)) // outlives the scope
        });
        assert!(std::ptr::eq(longest.unwrap(), &words[1]));
        assert_eq!((count, list), (2, vec!["mutably"]));
    });
}

#[watched]
fn mutable_parts_of_one_array() {
    let mut numbers = [0_usize; 100];
    scope::open_with(scope::await_all::<Oops>(), |s| {
        for (i, part) in numbers.chunks_mut(10).enumerate() {
            s.fork(move || {
                part.fill(i);
                Ok(())
            });
        }
        s.join()?;
        Ok(())
    })
    .unwrap();
    assert_eq!(numbers.iter().sum::<usize>(), 450);
}

#[watched]
fn the_closure_of_the_scope_may_consume_and_borrow() {
    everywhere(|| {
        let owned = String::from("owned");
        let mut borrowed = String::from("borrowed");
        let result = Builder::new().open(|s| {
            let owned = owned; // moved in, and so dropped before subtasks have ended: not theirs to borrow
            let length = s.fork({
                let copy = owned.clone();
                move || Ok::<_, Oops>(copy.len())
            });
            let all = s.join()?;
            borrowed.push_str(&owned);
            Ok(length.get(&all))
        });
        assert_eq!(result.unwrap(), 5);
        assert_eq!(borrowed, "borrowedowned");
    });
}
