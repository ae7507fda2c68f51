//! The attribute `#[libc_fn]`, for `pirn-libc` and `pirn-posix`. It is of no use without them.
//!
//! ```text
//! #[libc_fn]                                   /// `dirfd`.
//! pub unsafe fn dirfd(dir: *mut DIR)           ///
//!     -> c_int                                 /// # Safety
//! {                                            /// As for libc's function of this name.
//!     body                                     #[unsafe(no_mangle)]
//! }                                       =>   pub unsafe extern "C-unwind" fn dirfd(dir: *mut DIR)
//!                                                  -> c_int
//!                                              {
//!                                                  // libcs!() calls libc's own dirfd(dir).
//!                                                  unsafe { body }
//!                                              }
//! ```
//!
//! - The body of an `unsafe` function is one unsafe block: what the program passes to a function of
//!   libc obeys libc's contract for that function. An operation in it that is sound for another
//!   reason has a block and a reason of its own.
//! - `C-unwind`: glibc ends a cancelled thread by unwinding its stack.
//! - `libcs!()` evaluates the parameters as the caller passed them, whatever shadows them.
//! - `#[libc_fn(point)]` makes it a cancellation point: `cancel::point(|| libcs!(), || body)`. The
//!   body is a closure that owns the parameters, so there is nothing to drop around it.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Makes a function the definition of libc's function of its name. See the crate's documentation.
///
/// # Panics
/// If the item is not a plain function; the compiler reports that as an error at the attribute.
#[proc_macro_attribute]
pub fn libc_fn(options: TokenStream, item: TokenStream) -> TokenStream {
    let is_point = match options.to_string().as_str() {
        "" => false,
        "point" => true,
        other => panic!("`{other}` is no option of `#[libc_fn]`"),
    };
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let position = tokens.iter().position(|token| is_word(token, "fn"));
    let position = position.expect("`#[libc_fn]` belongs on a function");
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        panic!("the function has no body");
    };
    let signature = tokens.split_off(position);
    let is_unsafe = tokens.last().is_some_and(|token| is_word(token, "unsafe"));
    let own_docs = tokens.iter().position(|token| !is_attribute(token));
    let visibility = tokens.split_off(own_docs.unwrap_or(tokens.len()));
    let name = signature[1].to_string();

    let mut output = parse(&format!("#[doc = \"`{name}`.\"] #[doc = \"\"]"));
    output.extend(tokens);
    if is_unsafe {
        output.extend(parse(
            "#[doc = \"\"] #[doc = \"# Safety\"] #[doc = \"As for libc's function of this name.\"]",
        ));
    }
    output.extend(parse("#[unsafe(no_mangle)] #[allow(unused_unsafe)]"));
    output.extend(visibility);
    output.extend(parse("extern \"C-unwind\""));
    output.extend(signature.iter().cloned());
    let body = match is_point {
        true => point(body),
        false => body,
    };
    output.extend([braces(libcs(&signature, &body, is_unsafe))]);
    output
}

/// Returns a body that makes the call of `body` at a cancellation point.
fn point(body: Group) -> Group {
    let mut calls = parse("move || libcs!(), move ||");
    calls.extend([TokenTree::from(body)]);
    let mut point = parse("crate::cancel::point");
    point.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, calls))]);
    Group::new(Delimiter::Brace, point)
}

/// Returns the body with the macro `libcs` before it, if it uses that.
fn libcs(signature: &[TokenTree], body: &Group, is_unsafe: bool) -> TokenStream {
    let mut inner = TokenStream::new();
    if calls_libc(body.stream()) {
        let mut call: TokenStream = signature.iter().cloned().collect();
        if signature.len() == 3 {
            call.extend(parse("-> ()"));
        }
        let call = TokenTree::from(Group::new(Delimiter::Parenthesis, call));
        let mut rule = parse("() => ");
        let mut value = parse("pirn_rt::glibc::symbols::real!");
        value.extend([call]);
        rule.extend([braces(value)]);
        inner.extend(parse("macro_rules! libcs"));
        inner.extend([braces(rule)]);
    }
    if is_unsafe {
        inner.extend(parse("unsafe"));
        inner.extend([TokenTree::from(body.clone())]);
    } else {
        inner.extend(body.stream());
    }
    inner
}

/// Returns whether `libcs!` is among the tokens.
fn calls_libc(tokens: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens.iter().enumerate().any(|(i, token)| match token {
        TokenTree::Group(group) => calls_libc(group.stream()),
        TokenTree::Ident(_) => {
            is_word(token, "libcs")
                && matches!(tokens.get(i + 1), Some(TokenTree::Punct(p)) if p.as_char() == '!')
        }
        _ => false,
    })
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}

/// Returns whether a token is a part of an attribute: `#` or `[…]`.
fn is_attribute(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(punct) => punct.as_char() == '#',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Bracket,
        _ => false,
    }
}

fn braces(tokens: TokenStream) -> TokenTree {
    TokenTree::from(Group::new(Delimiter::Brace, tokens))
}

fn parse(text: &str) -> TokenStream {
    text.parse().expect("valid tokens")
}
