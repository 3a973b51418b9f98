//! Paths in the order of their occurrence in a file, found in its tokens: imports, calls, and inside macros.
//!
//! A parser of items would miss the inside of macros, and a search in the text would find comments and
//! strings; tokens have neither fault.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path as written, with the modules around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathUse {
    /// The line it begins on, counted from one.
    pub line: usize,
    /// Its segments: `std`, `fs`, `read`. A group `a::{b, c}` gives one path for each member.
    pub segments: Vec<String>,
    /// The inline modules that contain it, outermost first.
    pub modules: Vec<String>,
    /// Whether a module marked `#[cfg(test)]` contains it.
    pub in_test: bool,
}

/// Returns every path of two or more segments in the text of a Rust file.
///
/// # Errors
/// Returns the lexer's complaint about text that is not Rust.
pub fn paths(text: &str) -> Result<Vec<PathUse>, String> {
    let stream: TokenStream = text.parse().map_err(|e| format!("cannot be read as Rust: {e}"))?;
    let mut walker = Walker::default();
    walker.block(&trees(stream));
    Ok(walker.found)
}

#[derive(Default)]
struct Walker {
    found: Vec<PathUse>,
    modules: Vec<String>,
    in_test: bool,
}

impl Walker {
    fn block(&mut self, trees: &[TokenTree]) {
        let mut at = 0;
        while at < trees.len() {
            at = self.step(trees, at);
        }
    }

    /// Handles the item that begins at `at` and returns the start of the next.
    fn step(&mut self, trees: &[TokenTree], at: usize) -> usize {
        if let Some((name, body)) = inline_module(&trees[at..]) {
            let outer = self.in_test;
            self.in_test |= marked_test(&trees[..at]);
            self.modules.push(name);
            self.block(&body);
            self.modules.pop();
            self.in_test = outer;
            return at + 3;
        }
        match &trees[at] {
            TokenTree::Ident(_) => self.path(trees, at, &[]),
            TokenTree::Group(group) => {
                self.block(&self::trees(group.stream()));
                at + 1
            }
            _ => at + 1,
        }
    }

    /// Follows `a::b::c`; a group at the end gives a path for each of its members.
    fn path(&mut self, trees: &[TokenTree], start: usize, prefix: &[String]) -> usize {
        let mut segments = prefix.to_vec();
        let mut at = start;
        loop {
            match trees.get(at) {
                Some(TokenTree::Ident(ident)) => segments.push(ident.to_string()),
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    for member in members(&self::trees(group.stream())) {
                        self.path(&member, 0, &segments);
                    }
                    return at + 1;
                }
                _ => break,
            }
            at += 1;
            if !is_double_colon(trees, at) {
                break;
            }
            at += 2;
        }
        if segments.len() > 1 {
            let line = trees[start].span().start().line;
            let (modules, in_test) = (self.modules.clone(), self.in_test);
            self.found.push(PathUse { line, segments, modules, in_test });
        }
        at.max(start + 1)
    }
}

fn trees(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}

fn inline_module(trees: &[TokenTree]) -> Option<(String, Vec<TokenTree>)> {
    match trees {
        [TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Group(body), ..]
            if *keyword == "mod" && body.delimiter() == Delimiter::Brace =>
        {
            Some((name.to_string(), self::trees(body.stream())))
        }
        _ => None,
    }
}

/// Returns whether `#[cfg(test)]`, possibly among other attributes, is right before.
fn marked_test(before: &[TokenTree]) -> bool {
    let marks = before.iter().rev().take_while(|tree| match tree {
        TokenTree::Group(group) => group.delimiter() != Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == '#',
        TokenTree::Ident(ident) => *ident == "pub",
        TokenTree::Literal(_) => false,
    });
    marks.map(ToString::to_string).any(|mark| mark.replace(' ', "").contains("cfg(test)"))
}

fn is_double_colon(trees: &[TokenTree], at: usize) -> bool {
    let colon = |at| matches!(trees.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(at) && colon(at + 1)
}

fn members(trees: &[TokenTree]) -> Vec<Vec<TokenTree>> {
    let comma = |tree: &TokenTree| matches!(tree, TokenTree::Punct(p) if p.as_char() == ',');
    trees.split(comma).filter(|part| !part.is_empty()).map(<[_]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<String> {
        paths(text).unwrap().iter().map(|found| found.segments.join("::")).collect()
    }

    #[test]
    fn groups_give_one_path_for_each_member() {
        let text = "use std::{fs::File, io::{self, Read}};";
        assert_eq!(written(text), ["std::fs::File", "std::io::self", "std::io::Read"]);
    }

    #[test]
    fn paths_inside_macros_are_found_and_strings_and_comments_are_not() {
        let text = "// std::net\nfn f() { assert!(std::fs::exists(\"std::net::x\").is_ok()); }";
        assert_eq!(written(text), ["std::fs::exists"]);
    }

    #[test]
    fn a_path_in_a_test_module_is_marked() {
        let text = "use a::b; #[cfg(test)] mod tests { use super::c; }";
        let found = paths(text).unwrap();
        assert!(!found[0].in_test);
        assert!(found[1].in_test);
        assert_eq!(found[1].modules, ["tests"]);
    }
}
