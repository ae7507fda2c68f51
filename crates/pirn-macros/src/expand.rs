//! The expansion:
//!
//! ```text
//! #[attributes]                                 #[attributes]
//! pub fn main() -> Result<(), E> { body }  =>   pub fn main() -> ExitCode {
//!                                                   fn main() -> Result<(), E> { body }
//!                                                   run_main("main", || Termination::report(main()))
//!                                               }
//! ```
//!
//! A test expands in the same way, with `run_test` and its path.
//!
//! The report is made on the virtual thread because an `ExitCode` is `Send`, and results often are
//! not (`Box<dyn Error>`). A function without a result still has none, which `#[should_panic]`
//! requires, and a function that never returns still does not.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{AttrStyle, Attribute, Error, ItemFn, ReturnType, Signature, Type, Visibility};

/// The macro that is expanded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `#[pirn::main]`
    Main,
    /// `#[pirn::test]`
    Test,
}

impl Kind {
    fn attribute(self) -> &'static str {
        match self {
            Kind::Main => "#[pirn::main]",
            Kind::Test => "#[pirn::test]",
        }
    }
}

/// Returns the function `item`, changed to run on a virtual thread, or `compile_error!`s.
pub(crate) fn expand(kind: Kind, args: TokenStream, item: TokenStream) -> TokenStream {
    let attribute = kind.attribute();
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        // If it is a function with a mistake in it, the compiler explains that better than we do.
        let error = Error::new_spanned(&item, format!("{attribute} belongs on a function"));
        let error = error.into_compile_error();
        return quote!(#error #item);
    };
    match check(kind, &args, &function) {
        Ok(()) => wrap(kind, function),
        Err(error) => {
            // The stub saves the user a second error about a missing `main`.
            let (error, name) = (error.into_compile_error(), &function.sig.ident);
            quote!(#error #[allow(dead_code)] fn #name() {})
        }
    }
}

/// Refuses a function that cannot run as it is written. The error points at the first mistake.
fn check(kind: Kind, args: &TokenStream, function: &ItemFn) -> Result<(), Error> {
    let attribute = kind.attribute();
    let sig = &function.sig;
    let mistakes = [
        (
            args.clone(),
            format!(
                "{attribute} takes no arguments; the runtime is set up by \
                 `pirn::Config::new()` and by PIRN_PARALLELISM and its like"
            ),
        ),
        (
            sig.asyncness.to_token_stream(),
            format!(
                "`async` has no place under {attribute}: the function runs on a virtual thread, \
                 where blocking calls park; remove `async` and each `.await`"
            ),
        ),
        (
            sig.constness.to_token_stream(),
            format!("{attribute} cannot run a `const fn`; remove `const`"),
        ),
        (
            sig.safety.to_token_stream(),
            format!("{attribute} cannot run an `unsafe fn`; remove `unsafe`"),
        ),
        (
            sig.abi.to_token_stream(),
            format!("{attribute} runs Rust functions only; remove `extern`"),
        ),
        (
            sig.generics.params.to_token_stream(),
            format!(
                "a function under {attribute} must not be generic: nothing fills its parameters in"
            ),
        ),
        (
            sig.generics.where_clause.to_token_stream(),
            format!("a function under {attribute} must not have a `where` clause"),
        ),
        (
            arguments(sig),
            format!(
                "a function under {attribute} must not have arguments: nothing is passed to it"
            ),
        ),
        (
            second_test(kind, function),
            format!("remove `#[test]`: {attribute} adds it, and the test would run twice"),
        ),
    ];
    match mistakes.into_iter().find(|(tokens, _)| !tokens.is_empty()) {
        Some((tokens, message)) => Err(Error::new_spanned(tokens, message)),
        None => Ok(()),
    }
}

fn arguments(sig: &Signature) -> TokenStream {
    let (inputs, variadic) = (&sig.inputs, &sig.variadic);
    quote!(#inputs #variadic)
}

fn second_test(kind: Kind, function: &ItemFn) -> TokenStream {
    let is_test = |a: &&Attribute| kind == Kind::Test && a.path().is_ident("test");
    function.attrs.iter().find(is_test).to_token_stream()
}

/// Puts the outer function around a checked one.
fn wrap(kind: Kind, mut inner: ItemFn) -> TokenStream {
    // Outer attributes go on the outer function: lint levels reach inwards from there, and the rest
    // belongs there. Inner ones (`#![allow(...)]`) stay at the beginning of the body.
    let is_outer = |a: &Attribute| matches!(a.style, AttrStyle::Outer);
    let (attributes, within): (Vec<_>, Vec<_>) = std::mem::take(&mut inner.attrs)
        .into_iter()
        .partition(is_outer);
    inner.attrs = within;
    let visibility = std::mem::replace(&mut inner.vis, Visibility::Inherited);
    let name = &inner.sig.ident;
    let (test, run, thread_name) = match kind {
        Kind::Main => (None, quote!(run_main), plain_name(name)),
        Kind::Test => {
            let test = quote!(#[::core::prelude::v1::test]);
            (Some(test), quote!(run_test), path_name(name))
        }
    };
    let (output, body) = result(&inner.sig);
    quote! {
        #test
        #(#attributes)*
        #visibility fn #name() #output {
            #inner
            ::pirn::__private::#run(#thread_name, #body)
        }
    }
}

/// Returns the outer function's return type, and the code to run on the virtual thread.
fn result(inner: &Signature) -> (TokenStream, TokenStream) {
    let name = &inner.ident;
    let ty = match &inner.output {
        ReturnType::Type(_, ty) if !is_unit(ty) => ty,
        _ => return (quote!(), quote!(#name)),
    };
    if matches!(**ty, Type::Never(_)) {
        return (quote!(-> #ty), quote!(#name));
    }
    // The span makes `X: Termination is not satisfied` point at the type.
    let report = quote_spanned!(ty.span()=> ::std::process::Termination::report(#name()));
    (quote!(-> ::std::process::ExitCode), quote!(move || #report))
}

fn is_unit(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty())
}

fn plain_name(name: &Ident) -> TokenStream {
    let name = name.unraw().to_string();
    quote!(#name)
}

/// Returns a test's path: its name with its modules and the crate's, as in the test harness's list.
fn path_name(name: &Ident) -> TokenStream {
    let name = name.unraw().to_string();
    quote!(::core::concat!(::core::module_path!(), "::", #name))
}

#[cfg(test)]
mod tests;
