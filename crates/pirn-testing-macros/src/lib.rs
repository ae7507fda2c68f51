//! The attribute of pirn's own tests, which `pirn-testing` passes on.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Makes a function a test that ends the process when it hangs, and says which test it was.
///
/// Takes the place of `#[test]`. The limit is two minutes, or `#[watched(limit = DURATION)]`, an
/// expression. `#[watched(alone)]` runs the test in a child process of its own: what it does to the
/// process (descriptors' numbers, signal handlers, forks, limits) meets no other test.
///
/// The test's binary has the module `crate::common`, which does the work.
#[proc_macro_attribute]
pub fn watched(options: TokenStream, function: TokenStream) -> TokenStream {
    let Options { alone, limit } = match Options::parse(options) {
        Ok(options) => options,
        Err(message) => return compile_error(&message),
    };
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let Some(name) = name_of(&tokens) else {
        return compile_error("#[watched] is for functions");
    };
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        return compile_error("#[watched] is for functions with a body");
    };
    let watch = format!(
        "let _watchdog = crate::common::watch(concat!(module_path!(), \"::{name}\"), {limit});"
    );
    let mut watched = parsed(&watch);
    if alone {
        let closure = [parsed("&[], ||"), TokenTree::Group(body).into()];
        let arguments = Group::new(Delimiter::Parenthesis, closure.into_iter().collect());
        watched.extend(parsed("crate::common::child::isolated"));
        watched.extend([TokenTree::Group(arguments)]);
    } else {
        watched.extend([TokenTree::Group(body)]);
    }
    let mut test = parsed("#[::core::prelude::v1::test]");
    test.extend(tokens);
    test.extend([TokenTree::Group(Group::new(Delimiter::Brace, watched))]);
    test
}

/// What the attribute says.
struct Options {
    alone: bool,
    /// The tokens of an expression of type `Duration`.
    limit: String,
}

impl Options {
    /// Parses `alone`, `limit = EXPRESSION` or `alone, limit = EXPRESSION`.
    fn parse(options: TokenStream) -> Result<Options, String> {
        let text = options.to_string();
        let (alone, rest) = match text.strip_prefix("alone") {
            Some(rest) => (true, rest.trim_start_matches([',', ' '])),
            None => (false, text.as_str()),
        };
        let limit = match rest.strip_prefix("limit =") {
            Some(limit) => limit.to_owned(),
            None if rest.is_empty() => "::std::time::Duration::from_secs(120)".to_owned(),
            None => return Err(format!("#[watched] does not know `{rest}`")),
        };
        Ok(Options { alone, limit })
    }
}

/// Returns the name of the function.
fn name_of(tokens: &[TokenTree]) -> Option<String> {
    let mut tokens = tokens.iter();
    tokens.find(|token| token.to_string() == "fn")?;
    tokens.next().map(TokenTree::to_string)
}

/// Returns the tokens of text that is known to be Rust.
fn parsed(text: &str) -> TokenStream {
    text.parse().expect("these are tokens")
}

fn compile_error(message: &str) -> TokenStream {
    parsed(&format!("::core::compile_error!({message:?});"))
}
