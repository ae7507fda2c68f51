//! Short forms that fork some tasks and join them.

use super::sealed::Sealed;
use super::{Builder, JoinError, TaskScope, all_successful, any_successful};
use core::panic::Location;

/// Runs all these tasks at once, each on a virtual thread, and returns all their values, or the
/// first failure, which cancels the others.
///
/// `tasks` is a tuple of two to eight closures, whose values may be of different types, or an array
/// or a `Vec` of closures. They may borrow.
///
/// # Errors
/// The same as for [`TaskScope::join`].
///
/// # Examples
/// ```
/// use pirn::scope;
///
/// fn update_inventory(item: &str) -> Result<u32, String> { Ok(item.len() as u32) }
/// fn update_order(item: &str) -> Result<String, String> { Ok(format!("order of {item}")) }
///
/// fn handle_order(item: &str) -> Result<(u32, String), scope::JoinError<String>> {
///     scope::all((|| update_inventory(item), || update_order(item)))
/// }
/// assert_eq!(handle_order("pirn").unwrap(), (4, "order of pirn".to_string()));
/// ```
#[doc(alias = "invokeAll")]
#[track_caller]
pub fn all<E: Send, A: Tasks<E>>(tasks: A) -> Result<A::Values, JoinError<E>> {
    tasks.all()
}

/// Runs all these tasks at once, each on a virtual thread, and returns the value of the first that
/// succeeds; the others are cancelled.
///
/// # Errors
/// The first failure if all fail; otherwise the same as for [`TaskScope::join`].
///
/// # Examples
/// ```
/// use pirn::scope;
/// let servers = ["", "10.0.0.7"];
/// let found = scope::any(servers.map(|name| move || match name {
///     "" => Err("no name"),
///     name => Ok(name),
/// }));
/// assert_eq!(found.unwrap(), "10.0.0.7");
/// ```
#[doc(alias = "invokeAny")]
#[track_caller]
pub fn any<T, E, F>(tasks: impl IntoIterator<Item = F>) -> Result<T, JoinError<E>>
where
    F: FnOnce() -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    let tasks = tasks.into_iter();
    let place = Location::caller(); // Closures hide the caller.
    Builder::new().open_with(any_successful(), |s: TaskScope<'_, '_, _>| {
        for task in tasks {
            s.fork_at(place, task);
        }
        Ok(s.join()?.into_output())
    })
}

/// The tasks of [`all`]: a tuple of two to eight closures, an array, or a `Vec`. Other crates
/// cannot implement this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple, an array or a `Vec` of closures that return `Result<_, {E}>`",
    note = "the closures must be `Send`, and fail with the same type of error"
)]
pub trait Tasks<E>: Sealed {
    /// The values that the tasks return.
    type Values;

    /// Forks the tasks and joins them.
    ///
    /// # Errors
    /// The same as for [`all`].
    fn all(self) -> Result<Self::Values, JoinError<E>>;
}

impl<F> Sealed for Vec<F> {}

impl<T, E, F> Tasks<E> for Vec<F>
where
    F: FnOnce() -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    type Values = Vec<T>;

    #[track_caller]
    fn all(self) -> Result<Vec<T>, JoinError<E>> {
        let place = Location::caller();
        Builder::new().open_with(all_successful(), |s: TaskScope<'_, '_, _>| {
            for task in self {
                s.fork_at(place, task);
            }
            Ok(s.join()?.into_output())
        })
    }
}

impl<F, const N: usize> Sealed for [F; N] {}

impl<T, E, F, const N: usize> Tasks<E> for [F; N]
where
    F: FnOnce() -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    type Values = [T; N];

    #[track_caller]
    fn all(self) -> Result<[T; N], JoinError<E>> {
        let place = Location::caller();
        Builder::new().open(|s: TaskScope<'_, '_, _>| {
            let subtasks = self.map(|task| s.fork_at(place, task));
            let all = s.join()?;
            Ok(subtasks.map(|subtask| subtask.get(&all)))
        })
    }
}

macro_rules! tuples {
    ($(($($task:ident: $closure:ident -> $value:ident),+);)+) => {$(
        impl<$($closure),+> Sealed for ($($closure,)+) {}

        impl<E, $($value, $closure),+> Tasks<E> for ($($closure,)+)
        where
            E: Send,
            $($closure: FnOnce() -> Result<$value, E> + Send, $value: Send,)+
        {
            type Values = ($($value,)+);

            #[track_caller]
            fn all(self) -> Result<Self::Values, JoinError<E>> {
                let ($($task,)+) = self;
                let place = Location::caller();
                Builder::new().open(|s: TaskScope<'_, '_, _>| {
                    $(let $task = s.fork_at(place, $task);)+
                    let all = s.join()?;
                    Ok(($($task.get(&all),)+))
                })
            }
        }
    )+};
}

tuples! {
    (a: A -> T, b: B -> U);
    (a: A -> T, b: B -> U, c: C -> V);
    (a: A -> T, b: B -> U, c: C -> V, d: D -> W);
    (a: A -> T, b: B -> U, c: C -> V, d: D -> W, e: G -> X);
    (a: A -> T, b: B -> U, c: C -> V, d: D -> W, e: G -> X, f: H -> Y);
    (a: A -> T, b: B -> U, c: C -> V, d: D -> W, e: G -> X, f: H -> Y, g: I -> Z);
    (a: A -> T, b: B -> U, c: C -> V, d: D -> W, e: G -> X, f: H -> Y, g: I -> Z, h: K -> S);
}
