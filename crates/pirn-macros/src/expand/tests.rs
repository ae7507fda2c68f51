//! What is refused, and with which words; `tests/run.rs` runs what is accepted.

use super::{Kind, expand};
use proc_macro2::TokenStream;
use quote::quote;

fn main(item: TokenStream) -> String {
    expand(Kind::Main, TokenStream::new(), item).to_string()
}

fn test(item: TokenStream) -> String {
    expand(Kind::Test, TokenStream::new(), item).to_string()
}

/// Asserts that the expansion is an error with these words, and a stub in place of the function.
#[track_caller]
fn refused(expansion: &str, words: &[&str]) {
    assert!(
        expansion.contains("compile_error !"),
        "accepted: {expansion}"
    );
    assert!(
        !expansion.contains("__private"),
        "expanded all the same: {expansion}"
    );
    for word in words {
        assert!(expansion.contains(word), "no {word:?} in {expansion}");
    }
}

#[test]
fn main_wraps_its_function() {
    let expected = quote! {
        fn main() {
            fn main() { work(); }
            ::pirn::__private::run_main("main", main)
        }
    };
    assert_eq!(
        main(quote!(
            fn main() {
                work();
            }
        )),
        expected.to_string()
    );
}

#[test]
fn a_result_is_reported_on_the_virtual_thread() {
    let expected = quote! {
        #[doc = "Starts."]
        #[allow(unused)]
        pub(crate) fn main() -> ::std::process::ExitCode {
            fn main() -> Result<(), Mistake> { Ok(()) }
            ::pirn::__private::run_main("main", move || ::std::process::Termination::report(main()))
        }
    };
    let item = quote! {
        #[doc = "Starts."]
        #[allow(unused)]
        pub(crate) fn main() -> Result<(), Mistake> { Ok(()) }
    };
    assert_eq!(main(item), expected.to_string());
}

#[test]
fn test_adds_the_attribute_and_keeps_the_others() {
    let expected = quote! {
        #[::core::prelude::v1::test]
        #[should_panic(expected = "no")]
        #[ignore]
        fn adds() -> () {
            fn adds() -> () {}
            ::pirn::__private::run_test(
                ::core::concat!(::core::module_path!(), "::", "adds"), adds)
        }
    };
    let expansion = test(quote!(
        #[should_panic(expected = "no")]
        #[ignore]
        fn adds() -> () {}
    ));
    // The outer function writes the unit type by leaving it out.
    assert_eq!(
        expansion,
        expected
            .to_string()
            .replacen("-> ()", "", 1)
            .replace("  ", " ")
    );
}

#[test]
fn inner_attributes_stay_in_the_body() {
    let expected = quote! {
        #[allow(dead_code)]
        fn main() {
            fn main() { #![allow(unused)] let x = 1; }
            ::pirn::__private::run_main("main", main)
        }
    };
    let expansion = main(quote! {
        #[allow(dead_code)]
        fn main() { #![allow(unused)] let x = 1; }
    });
    assert_eq!(expansion, expected.to_string());
}

#[test]
fn async_is_refused() {
    refused(
        &main(quote!(
            async fn main() {}
        )),
        &[
            "`async` has no place",
            "#[pirn::main]",
            ".await",
            "fn main () { }",
        ],
    );
    refused(
        &test(quote!(
            async fn waits() {}
        )),
        &["`async` has no place", "#[pirn::test]"],
    );
}

#[test]
fn arguments_are_refused() {
    refused(
        &main(quote!(
            fn main(args: Vec<String>) {}
        )),
        &["must not have arguments"],
    );
    refused(
        &test(quote!(
            fn method(&self) {}
        )),
        &["must not have arguments"],
    );
}

#[test]
fn arguments_of_the_attribute_are_refused() {
    let expansion = expand(
        Kind::Main,
        quote!(threads = 2),
        quote!(
            fn main() {}
        ),
    );
    refused(
        &expansion.to_string(),
        &["takes no arguments", "pirn::Config::new()"],
    );
}

#[test]
fn generics_are_refused() {
    refused(
        &test(quote!(
            fn any<T>() {}
        )),
        &["must not be generic"],
    );
    refused(
        &test(quote!(
            fn any<'a>() {}
        )),
        &["must not be generic"],
    );
    refused(
        &test(quote!(
            fn any()
            where
                u8: Copy,
            {
            }
        )),
        &["`where` clause"],
    );
}

#[test]
fn qualifiers_are_refused() {
    refused(
        &main(quote!(
            const fn main() {}
        )),
        &["remove `const`"],
    );
    refused(
        &main(quote!(
            unsafe fn main() {}
        )),
        &["remove `unsafe`"],
    );
    refused(
        &main(quote!(
            extern "C" fn main() {}
        )),
        &["remove `extern`"],
    );
}

#[test]
fn a_second_test_attribute_is_refused() {
    refused(
        &test(quote!(
            #[test]
            fn twice() {}
        )),
        &["would run twice"],
    );
}

#[test]
fn anything_but_a_function_is_refused_and_kept() {
    let expansion = main(quote!(
        struct Main;
    ));
    refused(
        &expansion,
        &["#[pirn::main] belongs on a function", "struct Main ;"],
    );
}
