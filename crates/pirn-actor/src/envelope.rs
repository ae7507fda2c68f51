//! A message of any type for an actor with the state `S`: a *parcel* behind a table of functions.
//!
//! ```text
//!   +-----------+------------------------------------------+
//!   | functions | the parcel, if it is small enough ...    |   48 bytes
//!   +-----------+------------------------------------------+
//!               | ... or a pointer to it on the heap       |
//! ```
//!
//! Most messages are small: a mailbox then holds them in place, and a send allocates nothing.

use crate::error::short_name;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};

/// The number of words of a parcel that needs no allocation.
const WORDS: usize = 5;

/// An item for an actor with the state `S`: a message, a request, code.
pub(crate) trait Parcel<S, C>: Send {
    /// Handles it.
    fn deliver(self, state: &mut S, context: &C);

    /// Returns the name of the message's type, for logs and dumps.
    fn name() -> &'static str {
        short_name::<Self>()
    }

    /// Returns false if no asker waits for the result.
    fn is_wanted(&self) -> bool {
        true
    }

    /// Called before the parcel is dropped unhandled: tells its asker. Called with the lock of the
    /// mailbox or pool held.
    fn displace(&mut self) {}
}

/// The functions of a type of parcel. They name the types of state and context. This type does not,
/// so that it is `'static` even if those borrow.
struct Functions {
    /// Consumes the parcel.
    deliver: unsafe fn(*mut Words, *mut (), *const ()),
    is_wanted: unsafe fn(*const Words) -> bool,
    displace: unsafe fn(*mut Words),
    /// Consumes the parcel.
    discard: unsafe fn(*mut Words),
    /// The type's name.
    name: fn() -> &'static str,
}

type Words = MaybeUninit<[usize; WORDS]>;

/// A type that is not `Send`.
type For<S, C> = (fn(&mut S, &C), *mut ());

pub(crate) struct Envelope<S, C> {
    functions: &'static Functions,
    words: Words,
    /// It owns a parcel for `S` and `C`. A parcel is `Send`; nothing else is known of it.
    parcel: PhantomData<For<S, C>>,
}

// SAFETY: every constructor takes a parcel that is `Send`, and an envelope holds nothing else.
unsafe impl<S, C> Send for Envelope<S, C> {}

/// The functions for parcels of the type `P`.
struct Of<P>(PhantomData<P>);

impl<P> Of<P> {
    const IN_PLACE: bool =
        size_of::<P>() <= size_of::<Words>() && align_of::<P>() <= align_of::<Words>();

    /// Returns the place of the parcel.
    ///
    /// # Safety
    /// `words` holds a parcel of this type, as `Envelope::new` puts it there.
    unsafe fn place(words: *const Words) -> *mut P {
        if Self::IN_PLACE {
            words.cast::<P>().cast_mut()
        } else {
            // SAFETY: the caller's contract: then the first word is the pointer.
            unsafe { words.cast::<*mut P>().read() }
        }
    }

    /// Takes the parcel out.
    ///
    /// # Safety
    /// As for `place`. The caller does not use `words` afterwards.
    unsafe fn take(words: *const Words) -> P {
        // SAFETY: the caller's contract.
        unsafe {
            let place = Self::place(words);
            if Self::IN_PLACE {
                place.read()
            } else {
                *Box::from_raw(place)
            }
        }
    }
}

impl<P> Of<P> {
    /// # Safety
    /// As for `take`; `state` and `context` are references of these types.
    unsafe fn deliver<S, C>(words: *mut Words, state: *mut (), context: *const ())
    where
        P: Parcel<S, C>,
    {
        // SAFETY: the caller's contract.
        let (parcel, state, context) = unsafe {
            (
                Self::take(words),
                &mut *state.cast::<S>(),
                &*context.cast::<C>(),
            )
        };
        parcel.deliver(state, context);
    }

    /// # Safety
    /// As for `place`.
    unsafe fn is_wanted<S, C>(words: *const Words) -> bool
    where
        P: Parcel<S, C>,
    {
        // SAFETY: the caller's contract: there is a parcel, and the envelope is borrowed meanwhile.
        unsafe { &*Self::place(words) }.is_wanted()
    }

    /// # Safety
    /// As for `place`.
    unsafe fn displace<S, C>(words: *mut Words)
    where
        P: Parcel<S, C>,
    {
        // SAFETY: as in `is_wanted`.
        unsafe { &mut *Self::place(words) }.displace();
    }

    /// # Safety
    /// As for `take`.
    unsafe fn discard(words: *mut Words) {
        // SAFETY: the caller's contract.
        drop(unsafe { Self::take(words) });
    }

    const fn functions<S, C>() -> Functions
    where
        P: Parcel<S, C>,
    {
        Functions {
            deliver: Self::deliver::<S, C>,
            is_wanted: Self::is_wanted::<S, C>,
            displace: Self::displace::<S, C>,
            discard: Self::discard,
            name: P::name,
        }
    }
}

impl<S, C> Envelope<S, C> {
    pub(crate) fn new<P: Parcel<S, C> + 'static>(parcel: P) -> Envelope<S, C> {
        // SAFETY: the parcel is `'static`: it borrows nothing.
        unsafe { Self::borrowing(parcel) }
    }

    /// Makes an envelope for a parcel that may borrow.
    ///
    /// # Safety
    /// The parcel's borrows outlive the envelope, and the parcel that is taken out of it.
    pub(crate) unsafe fn borrowing<P: Parcel<S, C>>(parcel: P) -> Envelope<S, C> {
        let mut words = Words::uninit();
        if Of::<P>::IN_PLACE {
            // SAFETY: it fits, by size and alignment, and `words` is a local of this function.
            unsafe { words.as_mut_ptr().cast::<P>().write(parcel) };
        } else {
            let place = Box::into_raw(Box::new(parcel));
            // SAFETY: a pointer fits, and `words` is a local of this function.
            unsafe { words.as_mut_ptr().cast::<*mut P>().write(place) };
        }
        Envelope {
            functions: const { &Of::<P>::functions::<S, C>() },
            words,
            parcel: PhantomData,
        }
    }

    /// Handles the parcel.
    pub(crate) fn deliver(self, state: &mut S, context: &C) {
        let mut this = ManuallyDrop::new(self);
        let deliver = this.functions.deliver;
        let (state, context) = (core::ptr::from_mut(state), core::ptr::from_ref(context));
        // SAFETY: the constructor stored the functions of a parcel for `S` and `C`, and `this` is
        // not used afterwards.
        unsafe { deliver(&raw mut this.words, state.cast(), context.cast()) };
    }

    /// Returns false if no asker waits for the result.
    pub(crate) fn is_wanted(&self) -> bool {
        // SAFETY: the constructor stored the functions of this parcel, which lives as long as
        // `self`.
        unsafe { (self.functions.is_wanted)(&raw const self.words) }
    }

    /// Tells the asker, if there is one, that the parcel is about to be dropped.
    pub(crate) fn displace(&mut self) {
        // SAFETY: as in `is_wanted`.
        unsafe { (self.functions.displace)(&raw mut self.words) }
    }

    /// Returns the name of the message's type.
    pub(crate) fn name(&self) -> &'static str {
        (self.functions.name)()
    }

    /// Takes the parcel out.
    ///
    /// # Safety
    /// The envelope was made of a parcel of the type `P`.
    pub(crate) unsafe fn into_parcel<P: Parcel<S, C>>(self) -> P {
        debug_assert_eq!(self.name(), P::name(), "another type of parcel");
        let this = ManuallyDrop::new(self);
        // SAFETY: the caller's contract; `this` is not used afterwards.
        unsafe { Of::<P>::take(&raw const this.words) }
    }
}

impl<S, C> Drop for Envelope<S, C> {
    fn drop(&mut self) {
        // SAFETY: the constructor stored the functions of this parcel, and the envelope is not used
        // afterwards.
        unsafe { (self.functions.discard)(&raw mut self.words) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A part of each parcel: its count shows whether a parcel was leaked or dropped twice.
    type Alive = Arc<()>;

    struct Small(#[expect(dead_code, reason = "it is dropped")] Alive, u64);
    struct Large(
        #[expect(dead_code, reason = "it is dropped")] Alive,
        [u64; 20],
    );
    #[repr(align(64))]
    struct Aligned(#[expect(dead_code, reason = "it is dropped")] Alive);

    impl Parcel<u64, ()> for Small {
        fn deliver(self, state: &mut u64, (): &()) {
            *state += self.1;
        }
    }
    impl Parcel<u64, ()> for Large {
        fn deliver(self, state: &mut u64, (): &()) {
            *state += self.1.iter().sum::<u64>();
        }
        fn is_wanted(&self) -> bool {
            self.1[0] == 0
        }
    }
    impl Parcel<u64, ()> for Aligned {
        fn deliver(self, state: &mut u64, (): &()) {
            assert_eq!((&raw const self).addr() % 64, 0);
            *state += 1;
        }
    }

    #[test]
    fn parcels_of_all_sizes_are_delivered_once() {
        let alive = Arc::new(());
        let mut state = 0;
        Envelope::new(Small(Arc::clone(&alive), 1)).deliver(&mut state, &());
        Envelope::new(Large(Arc::clone(&alive), [1; 20])).deliver(&mut state, &());
        Envelope::new(Aligned(Arc::clone(&alive))).deliver(&mut state, &());
        assert_eq!(state, 1 + 20 + 1);
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn parcels_that_are_not_delivered_are_dropped() {
        let alive = Arc::new(());
        let small: Envelope<u64, ()> = Envelope::new(Small(Arc::clone(&alive), 1));
        let large: Envelope<u64, ()> = Envelope::new(Large(Arc::clone(&alive), [1; 20]));
        assert!(small.is_wanted());
        assert!(!large.is_wanted());
        assert_eq!(large.name(), "Large");
        drop((small, large));
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn a_parcel_comes_back() {
        let alive = Arc::new(());
        let envelope: Envelope<u64, ()> = Envelope::new(Large(Arc::clone(&alive), [7; 20]));
        // SAFETY: it is a `Large`.
        let parcel: Large = unsafe { envelope.into_parcel() };
        assert_eq!(parcel.1, [7; 20]);
        drop(parcel);
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn an_envelope_is_six_words() {
        assert_eq!(size_of::<Envelope<u64, ()>>(), 48);
    }
}
