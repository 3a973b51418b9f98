//! The shape of Rust files: opening prose, lengths, widths, and the places of `unsafe`.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::Violation;
use crate::tree::File;

/// The maximum lines of a file outside its test module.
pub const FILE_LINES_MAX: usize = 600;
/// The maximum lines of code in a function: blank lines and comments are free.
pub const FUNCTION_LINES_MAX: usize = 70;
/// The maximum characters in a line of code. Long string literals are allowed, as rustfmt allows them.
pub const LINE_CHARS_MAX: usize = 100;
/// The maximum characters in a line of a comment: rustfmt does not wrap those.
pub const COMMENT_CHARS_MAX: usize = 120;

/// Folders whose code may be `unsafe`: the kernel's interface, the C API, and bindings to other engines.
const UNSAFE_ALLOWED: [&str; 3] = ["crates/device", "crates/apps/kvapi", "crates/lab/peers"];

/// One function and its length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Function {
    /// Its lines of code, including the signature.
    pub lines: usize,
    /// Its name.
    pub name: String,
    /// The line it begins on.
    pub line: usize,
}

/// Reports the violations of shape in a Rust file.
#[must_use]
pub fn check(file: &File) -> Vec<Violation> {
    if !file.is("rs") {
        return Vec::new();
    }
    let mut found: Vec<Violation> = opening(file).into_iter().collect();
    found.extend(widths(file));
    match Shape::of(&file.text) {
        Ok(shape) => found.extend(shape.violations(file)),
        Err(message) => found.push(Violation::new(&file.path, 0, message)),
    }
    found
}

/// Returns the functions of a Rust file, in order; none if it cannot be parsed.
#[must_use]
pub fn functions(file: &File) -> Vec<Function> {
    Shape::of(&file.text).map(|shape| shape.functions).unwrap_or_default()
}

fn opening(file: &File) -> Option<Violation> {
    let opens = file.text.starts_with("//! ");
    (!opens).then(|| {
        Violation::new(
            &file.path,
            1,
            "the file must open with `//!`: what it is, and why it exists",
        )
    })
}

fn widths(file: &File) -> Vec<Violation> {
    let lines = file.text.lines().enumerate();
    let too_long = lines.filter_map(|(index, line)| {
        let (chars, max) = (line.chars().count(), chars_max(file, line)?);
        (chars > max).then(|| {
            let message = format!("a line of {chars} characters; at most {max}");
            Violation::new(&file.path, index + 1, message)
        })
    });
    too_long.collect()
}

/// Returns the maximum length of a line; nothing for one with a string literal. Code in tests is often in
/// macros, which rustfmt does not format, and may be as long as a comment.
fn chars_max(file: &File, line: &str) -> Option<usize> {
    if line.contains("// ") || line.contains("//!") || file.is_test() {
        return Some(COMMENT_CHARS_MAX);
    }
    (!line.contains('"')).then_some(LINE_CHARS_MAX)
}

/// The result of a parse of the file.
struct Shape {
    functions: Vec<Function>,
    unsafe_lines: Vec<usize>,
    test_lines: usize,
    forbids_unsafe: bool,
}

impl Shape {
    fn of(text: &str) -> Result<Self, String> {
        let parsed =
            syn::parse_file(text).map_err(|e| format!("line {}: {e}", e.span().start().line))?;
        let mut visitor = Visitor { lines: text.lines().collect(), ..Visitor::default() };
        visitor.visit_file(&parsed);
        let forbids_unsafe = parsed.attrs.iter().any(is_forbid_unsafe);
        Ok(Self {
            functions: visitor.functions,
            unsafe_lines: visitor.unsafe_lines,
            test_lines: parsed.items.iter().map(test_lines).sum(),
            forbids_unsafe,
        })
    }

    fn violations(&self, file: &File) -> Vec<Violation> {
        let mut found = self.too_long(file);
        let may = UNSAFE_ALLOWED.iter().any(|folder| file.path.starts_with(folder));
        if !may {
            let complain = |line: &usize| {
                Violation::new(&file.path, *line, "unsafe code outside the device crate")
            };
            found.extend(self.unsafe_lines.iter().map(complain));
            if is_root(file) && !self.forbids_unsafe {
                let message = "the crate's root must say #![forbid(unsafe_code)]";
                found.push(Violation::new(&file.path, 1, message));
            }
        }
        found
    }

    fn too_long(&self, file: &File) -> Vec<Violation> {
        let mut found = Vec::new();
        let lines = file.text.lines().count() - self.test_lines;
        if !file.is_test() && lines > FILE_LINES_MAX {
            let message = format!("{lines} lines without tests; at most {FILE_LINES_MAX}");
            found.push(Violation::new(&file.path, 0, message));
        }
        for function in self.functions.iter().filter(|it| it.lines > FUNCTION_LINES_MAX) {
            let Function { name, lines, line } = function;
            let message = format!("{name} has {lines} lines of code; at most {FUNCTION_LINES_MAX}");
            found.push(Violation::new(&file.path, *line, message));
        }
        found
    }
}

fn is_root(file: &File) -> bool {
    let mut parts = file.path.iter().rev();
    let name = parts.next().and_then(|name| name.to_str());
    matches!(name, Some("lib.rs" | "main.rs")) && parts.next().is_some_and(|folder| folder == "src")
}

fn is_forbid_unsafe(attr: &syn::Attribute) -> bool {
    attr.path().is_ident("forbid")
        && attr.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("unsafe_code"))
}

fn is_cfg_test(attr: &syn::Attribute) -> bool {
    attr.path().is_ident("cfg")
        && attr.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}

fn test_lines(item: &syn::Item) -> usize {
    match item {
        syn::Item::Mod(module) if module.attrs.iter().any(is_cfg_test) => {
            let span = module.span();
            span.end().line - span.start().line + 1
        }
        _ => 0,
    }
}

#[derive(Default)]
struct Visitor<'a> {
    lines: Vec<&'a str>,
    functions: Vec<Function>,
    unsafe_lines: Vec<usize>,
}

impl Visitor<'_> {
    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let (first, last) = (signature.span().start().line, body.span().end().line);
        let code = |line: &&&str| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with("//")
        };
        let lines = self.lines[first - 1..last].iter().filter(code).count();
        self.functions.push(Function { lines, name: signature.ident.to_string(), line: first });
        if let syn::Safety::Unsafe(keyword) = &signature.safety {
            self.note_unsafe(Some(keyword.span));
        }
    }

    fn note_unsafe(&mut self, span: Option<Span>) {
        self.unsafe_lines.extend(span.map(|span| span.start().line));
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.note_unsafe(Some(block.unsafe_token.span));
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.note_unsafe(item.unsafety.as_ref().map(Spanned::span));
        visit::visit_item_impl(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let file = File { path: path.into(), text: text.into() };
        check(&file).into_iter().map(|found| found.message).collect()
    }

    fn long_function(lines: usize) -> String {
        format!("//! Long.\nfn long() {{\n{}}}\n", "    step();\n".repeat(lines))
    }

    #[test]
    fn a_file_without_opening_prose_is_refused() {
        assert_eq!(complaints("crates/a/src/b.rs", "//! What.\nfn f() {}\n"), [""; 0]);
        assert_eq!(complaints("crates/a/src/b.rs", "fn f() {}\n").len(), 1);
    }

    #[test]
    fn the_longest_allowed_function_passes_and_one_line_more_fails() {
        let allowed = FUNCTION_LINES_MAX - 2;
        assert_eq!(complaints("crates/a/src/b.rs", &long_function(allowed)), [""; 0]);
        let found = complaints("crates/a/src/b.rs", &long_function(allowed + 1));
        assert_eq!(found, ["long has 71 lines of code; at most 70"]);
    }

    #[test]
    fn comments_and_blank_lines_in_a_function_are_free() {
        let text = format!("//! Long.\nfn f() {{\n{}}}\n", "    // why\n\n".repeat(50));
        assert_eq!(complaints("crates/a/src/b.rs", &text), [""; 0]);
    }

    #[test]
    fn a_long_file_fails_but_its_tests_are_not_counted() {
        let code = "const A: u8 = 0;\n".repeat(FILE_LINES_MAX - 1);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "const B: u8 = 0;\n".repeat(9));
        let path = "crates/a/src/b.rs";
        assert_eq!(complaints(path, &format!("//! Long.\n{code}{tests}")), [""; 0]);
        assert_eq!(complaints(path, &format!("//! Long.\n{code}const C: u8 = 0;\n")).len(), 1);
        let in_tests = format!("//! Long.\n{code}{code}");
        assert_eq!(complaints("crates/a/tests/b.rs", &in_tests), [""; 0]);
    }

    #[test]
    fn wide_lines_are_refused_unless_they_hold_a_literal() {
        let wide = format!("//! Wide.\n// {}\n", "x".repeat(COMMENT_CHARS_MAX));
        assert_eq!(complaints("crates/a/src/b.rs", &wide).len(), 1);
        let wide = format!("//! Wide.\nconst {}: u8 = 0;\n", "X".repeat(LINE_CHARS_MAX));
        assert_eq!(complaints("crates/a/src/b.rs", &wide).len(), 1);
        assert_eq!(complaints("crates/a/tests/b.rs", &wide), [""; 0]);
        let literal = format!("//! Wide.\nconst A: &str = \"{}\";\n", "x".repeat(LINE_CHARS_MAX));
        assert_eq!(complaints("crates/a/src/b.rs", &literal), [""; 0]);
    }

    #[test]
    fn unsafe_code_is_refused_outside_the_device() {
        let samples = [
            "//! U.\nfn f() { unsafe { g() } }\n",
            "//! U.\nunsafe fn f() {}\n",
            "//! U.\nunsafe impl Send for X {}\n",
        ];
        for text in samples {
            assert_eq!(complaints("crates/store/src/b.rs", text).len(), 1, "{text}");
            assert_eq!(complaints("crates/device/src/b.rs", text), [""; 0]);
        }
    }

    #[test]
    fn a_root_that_does_not_forbid_unsafe_code_is_refused() {
        let path = "crates/store/src/lib.rs";
        assert_eq!(complaints(path, "//! Root.\n").len(), 1);
        assert_eq!(complaints(path, "//! Root.\n#![forbid(unsafe_code)]\n"), [""; 0]);
        assert_eq!(complaints("crates/device/src/lib.rs", "//! Root.\n"), [""; 0]);
    }
}
