//! Scoped values: bound during a call, and read by all code that the call reaches.
//!
//! [`bindings`] has the untyped list of bindings; this file has the types, and why they are sound.

mod bindings;

pub(crate) use bindings::Bindings;

use core::fmt;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr;
use core::sync::atomic::AtomicU8;

/// A value that is bound during a call and can be read by all code that the call reaches, without
/// being passed as an argument.
///
/// Examples are a request's id, the user on whose behalf the work is done, or a transaction, which
/// would otherwise be an argument of every function in between, or a thread-local that must be
/// reset by hand. Declare it with [`scoped_value!`](macro@crate::scoped_value).
///
/// The value is borrowed, not moved or cloned, and the compiler checks that it outlives the call.
/// Code inside the call cannot change it; use [`bind`](Self::bind) again to give an inner call
/// another value.
///
/// # Threads
/// It works on virtual and on platform threads, and each thread has its own bindings. Forks of a
/// *structured scope* inherit the bindings that were in force when the scope was opened, at the
/// cost of one pointer, because the forks end before the bindings do. Other threads start with
/// nothing bound: threads of [`thread::spawn`](crate::thread::spawn) may outlive the bindings, and
/// threads of [`thread::scope`](crate::thread::scope) and `std::thread` behave in the same way.
///
/// # Types
/// `T` may be unsized (`str`, `[u8]`, `dyn Trait + Sync`). It must be [`Sync`], because forks read
/// it from other threads, and `'static`, which says that the *type* contains no lifetimes; the
/// value may well be a local variable.
///
/// # Cost
/// Binding writes a few words on the stack and one thread-local. Reading compares addresses, of the
/// nearest binding first, until it finds the right one: some 3 ns for the nearest, and one or two
/// more for each binding before it. There is no allocation, no lock and no count. To bind dozens of
/// values at once, bind one `struct` that has them.
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
/// The value that [`with`](Self::with) lends cannot be kept:
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
/// A `const` cannot be bound, because it has no address of its own, by which scoped values are told
/// apart.
/// ```compile_fail
/// const ID: pirn::ScopedValue<u32> = pirn::ScopedValue::new(); // must be a `static`
/// ID.bind(&1, || ());
/// ```
pub struct ScopedValue<T: ?Sized> {
    /// Where [`new`](Self::new) was called; error messages name it.
    declared: &'static Location<'static>,
    /// Gives each scoped value a unique address. It is never read.
    ///
    /// A reference to a `const` is `'static` too, and constants of equal bytes may share one
    /// address, even with different `T`: then a value bound as one type would be read as another.
    /// Interior mutability forbids both, by the rules of the language: such a constant is copied at
    /// each use, into a temporary that is not `'static`. And with a size of at least one byte, two
    /// `static`s are never at the same address.
    #[expect(dead_code, reason = "it is there for its type")]
    identity: AtomicU8,
    /// `&T` is written and read, so the type is invariant in `T`. Otherwise a value could be bound
    /// as a subtype that it is not:
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
    /// Returns a scoped value that is not bound yet. Programs usually call
    /// [`scoped_value!`](macro@crate::scoped_value) instead.
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
    /// The binding ends with the call, also when `f` panics. An inner binding hides it while that
    /// lasts.
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
        // `value` is bound by its address, because a reference to a slice or `dyn` is two words.
        let value: *const &T = &raw const value;
        // SAFETY: the local variable stays until `f` has returned. Only `try_with` of the scoped
        // value with this key follows the address, as one of a `&T`.
        unsafe { Bindings::bind(self.key(), value.cast(), f) }
    }

    /// Calls `f` with the bound value, and returns what `f` returns.
    ///
    /// # Panics
    /// If nothing is bound on this thread. [`try_with`](Self::try_with) returns `None` instead.
    #[inline]
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Some(result) => result,
            None => self.unbound(),
        }
    }

    /// Calls `f` with the bound value, and returns what `f` returns; `None` if nothing is bound on
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
        // our own `bind` bound this address of a `&T`, and has not returned: it would have ended
        // the binding.
        Some(f(unsafe { *value.cast::<&T>() }))
    }

    /// Returns a copy of the bound value.
    ///
    /// # Panics
    /// If nothing is bound on this thread.
    #[inline]
    #[track_caller]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        self.with(|value| *value)
    }

    /// Returns a clone of the bound value.
    ///
    /// # Panics
    /// If nothing is bound on this thread. [`cloned_or`](Self::cloned_or) returns a default
    /// instead.
    #[inline]
    #[track_caller]
    pub fn cloned(&self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Returns a clone of the bound value, or `default` if nothing is bound on this thread.
    #[inline]
    pub fn cloned_or(&self, default: T) -> T
    where
        T: Clone,
    {
        self.try_with(T::clone).unwrap_or(default)
    }

    /// Returns whether a value is bound on this thread.
    #[inline]
    pub fn is_bound(&self) -> bool {
        Bindings::find(self.key()).is_some()
    }

    /// Returns the key of this scoped value's bindings.
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

/// Shows the value that is bound on the thread that formats it.
impl<T: ?Sized + fmt::Debug + Sync + 'static> fmt::Debug for ScopedValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = self.try_with(|value| f.debug_tuple("ScopedValue").field(&value).finish());
        bound.unwrap_or_else(|| f.write_str("ScopedValue(<unbound>)"))
    }
}

/// Declares [`ScopedValue`]s, as `thread_local!` declares thread-locals.
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
