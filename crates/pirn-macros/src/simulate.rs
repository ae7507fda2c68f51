//! The expansion of `#[pirn_sim::test]`:
//!
//! ```text
//! #[pirn_sim::test(seeds(0..9))]         #[test]
//! fn name() { body }               =>    fn name() {
//!                                            fn name() { body }
//!                                            Sim::new().seeds(0..9).check(name)
//!                                        }
//! ```

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{AttrStyle, Error, Expr, ExprCall, ItemFn, Token, Visibility};

/// Returns the function `item` as a test that is simulated, or `compile_error!`s.
pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    let function = syn::parse2::<ItemFn>(item.clone());
    let calls = Punctuated::<ExprCall, Token![,]>::parse_terminated.parse2(args);
    match (function, calls) {
        (Ok(function), Ok(calls)) => match check(&function, &calls) {
            Ok(()) => wrap(function, &calls),
            Err(error) => error.into_compile_error(),
        },
        (Err(_), _) => {
            let error = Error::new_spanned(&item, "#[pirn_sim::test] belongs on a function");
            let error = error.into_compile_error();
            quote!(#error #item)
        }
        (_, Err(error)) => Error::new(
            error.span(),
            "the arguments are methods of `pirn_sim::Sim`, such as `seeds(0..1000)`",
        )
        .into_compile_error(),
    }
}

/// Refuses a function that cannot be a test of many runs.
fn check(function: &ItemFn, calls: &Punctuated<ExprCall, Token![,]>) -> Result<(), Error> {
    let sig = &function.sig;
    let mistakes = [
        (
            sig.asyncness.to_token_stream(),
            "remove `async`: simulated code blocks",
        ),
        (
            sig.inputs.to_token_stream(),
            "a test has no arguments: nothing is passed to it",
        ),
        (
            sig.generics.params.to_token_stream(),
            "a test must not be generic",
        ),
        (
            sig.output.to_token_stream(),
            "a test that is simulated returns nothing: it fails by a panic",
        ),
    ];
    for (tokens, message) in mistakes {
        if !tokens.is_empty() {
            return Err(Error::new_spanned(tokens, message));
        }
    }
    match calls
        .iter()
        .find(|call| !matches!(*call.func, Expr::Path(_)))
    {
        Some(call) => Err(Error::new_spanned(
            call,
            "the name of a method of `pirn_sim::Sim`",
        )),
        None => Ok(()),
    }
}

/// Puts the outer function around a checked one.
fn wrap(mut inner: ItemFn, calls: &Punctuated<ExprCall, Token![,]>) -> TokenStream {
    let (attributes, within): (Vec<_>, Vec<_>) = std::mem::take(&mut inner.attrs)
        .into_iter()
        .partition(|it| matches!(it.style, AttrStyle::Outer));
    inner.attrs = within;
    let visibility = std::mem::replace(&mut inner.vis, Visibility::Inherited);
    let name = &inner.sig.ident;
    let calls = calls.iter();
    quote! {
        #[::core::prelude::v1::test]
        #(#attributes)*
        #visibility fn #name() {
            #inner
            ::pirn_sim::Sim::new() #(.#calls)* .check(#name)
        }
    }
}
