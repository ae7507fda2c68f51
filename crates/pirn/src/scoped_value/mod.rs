//! Scoped values: bound for the extent of a call, read by all that it calls.
//!
//! [`bindings`] has the list that they are kept in, without types; here are the types, and why they
//! are right.

mod bindings;

pub(crate) use bindings::Bindings;

use core::fmt;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr;
use core::sync::atomic::AtomicU8;

/// A value that is bound for the extent of a call and read by everything that it calls, without
/// being passed on.
///
/// The request's id, the user on whose behalf the work is done, the transaction: what would
/// otherwise be an argument of every function in between, or a thread-local that somebody must
/// remember to reset. Declare it with [`scoped_value!`](macro@crate::scoped_value).
///
/// The value is borrowed, not moved or cloned, and the compiler sees to it that it outlives the
/// call. Nobody inside can change it; [`bind`](Self::bind) again to let an inner call see another
/// one.
///
/// # Threads
/// It works on virtual and on platform threads, and each has its own bindings. Forks of a
/// *structured scope* inherit those that were in force when the scope was opened, at the cost of
/// one pointer, because the scope ends before they do. Other threads start with nothing bound:
/// those of [`thread::spawn`](crate::thread::spawn) may outlive the bindings, and those of
/// [`thread::scope`](crate::thread::scope) and `std::thread` are the same in this.
///
/// # Types
/// `T` may be unsized (`str`, `[u8]`, `dyn Trait + Sync`). It is [`Sync`], because forks read it
/// from other threads, and `'static`, which says that the *type* has no lifetimes in it; the value
/// may well be a local variable.
///
/// # Cost
/// To bind is to write some words on the stack and one thread-local. To read is to compare
/// addresses, of the nearest binding first, until the one read is found: some 3 ns for the nearest,
/// one or two more for each other before it. No allocation, no lock, no count. With dozens of
/// values bound at once, bind one `struct` that has them.
///
/// # Examples
/// ```
/// pirn::scoped_value! {
///     static USER: str;
/// }
///
/// fn greeting() -> String {
///     USER.with(|user| format!("Hello, {user}!"))
/// }
///
/// let name = String::from("Alice");
/// assert_eq!(USER.bind(&name, greeting), "Hello, Alice!");
/// assert!(!USER.is_bound());
/// ```
///
/// What [`with`](Self::with) lends cannot be kept:
/// ```compile_fail
/// pirn::scoped_value! { static USER: str; }
///
/// let name = String::from("Alice");
/// let kept: &str = USER.bind(&name, || USER.with(|user| user));
/// ```
///
/// A type that other threads must not see cannot be a scoped value:
/// ```compile_fail
/// pirn::scoped_value! { static COUNT: std::cell::Cell<u32>; }
/// ```
///
/// A `const` cannot be bound: it has no address of its own, which is what tells one scoped value
/// from another.
/// ```compile_fail
/// const ID: pirn::ScopedValue<u32> = pirn::ScopedValue::new(); // must be a `static`
/// ID.bind(&1, || ());
/// ```
pub struct ScopedValue<T: ?Sized> {
    /// Where [`new`](Self::new) was called, to be told apart in errors.
    declared: &'static Location<'static>,
    /// Gives each scoped value an address that nothing else has, though nobody reads it.
    ///
    /// A reference to a `const` is `'static` too, and constants of equal bytes may share one
    /// address, even with different `T`: what was bound as one type would be read as another.
    /// Interior mutability forbids both, in the language: such a constant is copied at each use,
    /// into a temporary that is not `'static`. And with a size of at least one byte, two `static`s
    /// are never at the same address.
    #[expect(dead_code, reason = "it is there for its type")]
    identity: AtomicU8,
    /// `&T` goes in and comes out, so this is invariant in `T`. Otherwise a value could be bound as
    /// a subtype that it is not:
    ///
    /// ```compile_fail
    /// pirn::scoped_value! { static SINK: fn(&str); }
    ///
    /// fn keep(text: &'static str) {} // would be called with a text that is not `'static`
    /// let sink: &'static pirn::ScopedValue<fn(&'static str)> = &SINK;
    /// sink.bind(&(keep as fn(&'static str)), || SINK.with(|sink| sink(&String::from("short-lived"))));
    /// ```
    value: PhantomData<fn(&T) -> &T>,
}

impl<T: ?Sized + Sync + 'static> ScopedValue<T> {
    /// Returns a scoped value, bound to nothing yet. [`scoped_value!`](macro@crate::scoped_value)
    /// is the usual way to get here.
    ///
    /// # Examples
    /// ```
    /// use pirn::ScopedValue;
    ///
    /// static DEPTH: ScopedValue<u32> = ScopedValue::new();
    /// assert_eq!(DEPTH.bind(&1, || DEPTH.get()), 1);
    /// ```
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "a default is not `const`")]
    pub const fn new() -> ScopedValue<T> {
        ScopedValue {
            declared: Location::caller(),
            identity: AtomicU8::new(0),
            value: PhantomData,
        }
    }

    /// Calls `f` with this scoped value bound to `value`, and returns what `f` returns.
    ///
    /// The binding ends with the call, also when `f` panics. A binding inside another hides it for
    /// as long.
    ///
    /// # Examples
    /// ```
    /// pirn::scoped_value! {
    ///     static LEVEL: u32;
    /// }
    ///
    /// LEVEL.bind(&1, || {
    ///     assert_eq!(LEVEL.bind(&2, || LEVEL.get()), 2);
    ///     assert_eq!(LEVEL.get(), 1);
    /// });
    /// ```
    #[inline]
    pub fn bind<R>(&'static self, value: &T, f: impl FnOnce() -> R) -> R {
        // By its address, because a reference to a slice or `dyn` is two words.
        let value: *const &T = &raw const value;
        Bindings::bind(self.key(), value.cast(), f)
    }

    /// Calls `f` with the value bound, and returns what `f` returns.
    ///
    /// # Panics
    /// If nothing is bound on this thread. [`try_with`](Self::try_with) does not.
    ///
    /// # Examples
    /// ```
    /// pirn::scoped_value! {
    ///     static WORDS: [&'static str];
    /// }
    ///
    /// let count = WORDS.bind(&["warp", "weft"], || WORDS.with(|words| words.len()));
    /// assert_eq!(count, 2);
    /// ```
    #[inline]
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Some(result) => result,
            None => self.unbound(),
        }
    }

    /// Calls `f` with the value bound, and returns what `f` returns; `None` if nothing is bound on
    /// this thread.
    ///
    /// # Examples
    /// ```
    /// pirn::scoped_value! {
    ///     static USER: str;
    /// }
    ///
    /// fn user() -> String {
    ///     USER.try_with(str::to_owned).unwrap_or_else(|| "nobody".into())
    /// }
    ///
    /// assert_eq!(user(), "nobody");
    /// assert_eq!(USER.bind("Alice", user), "Alice");
    /// ```
    #[inline]
    pub fn try_with<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
        let value = Bindings::find(self.key())?;
        // SAFETY: a key is the address of a `&'static ScopedValue`, and only one can be at ours. So
        // our own `bind` gave this, the address of a `&T`, and it has not returned: it would have
        // ended the binding.
        Some(f(unsafe { *value.cast::<&T>() }))
    }

    /// Returns a copy of the value bound.
    ///
    /// # Panics
    /// If nothing is bound on this thread.
    ///
    /// # Examples
    /// ```
    /// pirn::scoped_value! {
    ///     static REQUEST_ID: u64;
    /// }
    ///
    /// assert_eq!(REQUEST_ID.bind(&7, || REQUEST_ID.get()), 7);
    /// ```
    #[inline]
    #[track_caller]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        self.with(|value| *value)
    }

    /// Returns a clone of the value bound.
    ///
    /// # Panics
    /// If nothing is bound on this thread. [`cloned_or`](Self::cloned_or) does not.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    ///
    /// pirn::scoped_value! {
    ///     static CONFIG: Arc<Vec<u32>>;
    /// }
    ///
    /// let config = Arc::new(vec![1, 2]);
    /// let clone = CONFIG.bind(&config, || CONFIG.cloned());
    /// assert!(Arc::ptr_eq(&clone, &config));
    /// ```
    #[inline]
    #[track_caller]
    pub fn cloned(&self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Returns a clone of the value bound, or `default` if nothing is bound on this thread.
    ///
    /// # Examples
    /// ```
    /// pirn::scoped_value! {
    ///     static RETRIES: u32;
    /// }
    ///
    /// assert_eq!(RETRIES.cloned_or(3), 3);
    /// assert_eq!(RETRIES.bind(&0, || RETRIES.cloned_or(3)), 0);
    /// ```
    #[inline]
    pub fn cloned_or(&self, default: T) -> T
    where
        T: Clone,
    {
        self.try_with(T::clone).unwrap_or(default)
    }

    /// Returns whether a value is bound on this thread.
    ///
    /// # Examples
    /// ```
    /// pirn::scoped_value! {
    ///     static TRACING: ();
    /// }
    ///
    /// assert!(!TRACING.is_bound());
    /// assert!(TRACING.bind(&(), || TRACING.is_bound()));
    /// ```
    #[inline]
    pub fn is_bound(&self) -> bool {
        Bindings::find(self.key()).is_some()
    }

    /// What bindings of this scoped value are known by.
    #[inline]
    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    #[cold]
    #[track_caller]
    fn unbound(&self) -> ! {
        panic!(
            "the scoped value of type `{}` declared at {} is not bound on this thread: call this inside `ScopedValue::bind`, \
             on the same thread or in a fork of a structured scope opened there (`thread::spawn` inherits no bindings)",
            core::any::type_name::<T>(),
            self.declared,
        )
    }
}

/// Shows the value bound on the thread that asks.
impl<T: ?Sized + fmt::Debug + Sync + 'static> fmt::Debug for ScopedValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = self.try_with(|value| f.debug_tuple("ScopedValue").field(&value).finish());
        bound.unwrap_or_else(|| f.write_str("ScopedValue(<unbound>)"))
    }
}

/// Declares [`ScopedValue`]s, as `thread_local!` does thread-locals.
///
/// Each `static NAME: T;` becomes a `static NAME: ScopedValue<T>`, with its attributes and
/// visibility.
///
/// # Examples
/// ```
/// pirn::scoped_value! {
///     /// The number of the request being served.
///     pub static REQUEST_ID: u64;
///     static USER: str;
/// }
///
/// fn log(event: &str) -> String {
///     USER.with(|user| format!("request {} of {user}: {event}", REQUEST_ID.get()))
/// }
///
/// let line = REQUEST_ID.bind(&7, || USER.bind("Alice", || log("begun")));
/// assert_eq!(line, "request 7 of Alice: begun");
/// ```
#[macro_export]
macro_rules! scoped_value {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty);* $(;)?) => {
        $(
            $(#[$attribute])*
            $visibility static $name: $crate::ScopedValue<$type> = $crate::ScopedValue::new();
        )*
    };
}
