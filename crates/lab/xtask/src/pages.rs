//! HTML pages of the repository: small, self-contained, and with links that lead to something.

use std::path::Path;

use crate::Violation;
use crate::tree::File;

/// The maximum bytes of all pages together.
pub const PAGES_BYTES_MAX: usize = 2_000_000;

/// Markup that loads or runs something, which is refused in a page.
const LOADS: [&str; 6] = ["<script", "<link", "<iframe", " src=", "url(", "@import"];

/// Reports the violations in the HTML pages of the repository.
#[must_use]
pub fn check(files: &[File]) -> Vec<Violation> {
    let pages: Vec<&File> = files.iter().filter(|file| file.is("html")).collect();
    let mut found: Vec<Violation> = pages.iter().flat_map(|page| in_page(page, &pages)).collect();
    let bytes: usize = pages.iter().map(|page| page.text.len()).sum();
    if let Some(first) = pages.first().filter(|_| bytes > PAGES_BYTES_MAX) {
        let message = format!("HTML pages of {bytes} bytes together; at most {PAGES_BYTES_MAX}");
        found.push(Violation::new(&first.path, 0, message));
    }
    found
}

fn in_page(page: &File, all: &[&File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        for loads in LOADS.iter().filter(|loads| line.contains(**loads)) {
            let message = format!("`{loads}`: a page loads nothing and runs nothing");
            found.push(Violation::new(&page.path, index + 1, message));
        }
        for target in line.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            if !leads_somewhere(page, target, all) {
                let message = format!("the link to {target} is dead");
                found.push(Violation::new(&page.path, index + 1, message));
            }
        }
    }
    found
}

/// Returns whether the target is a page next to this one, with that section.
fn leads_somewhere(page: &File, target: &str, all: &[&File]) -> bool {
    let (name, section) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.path.parent().unwrap_or(Path::new(""));
    let path = if name.is_empty() { page.path.clone() } else { folder.join(name) };
    let has_section = |text: &str| text.contains(&format!(" id=\"{section}\""));
    let is_it = |it: &&&File| it.path == path;
    all.iter().find(is_it).is_some_and(|it| section.is_empty() || has_section(&it.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn links_lead_to_pages_and_sections_that_are_there() {
        let a =
            "<a href=\"b.html#s\">b</a> <a href=\"b.html\">b</a> <a href=\"#t\">t</a><p id=\"t\">";
        let pages = [page("docs/a.html", a), page("docs/b.html", "<section id=\"s\">")];
        assert!(check(&pages).is_empty());
        assert_eq!(check(&pages[..1]).len(), 2);
        assert_eq!(check(&[page("docs/a.html", "<a href=\"#t\">")]).len(), 1);
    }

    #[test]
    fn a_page_that_loads_something_or_is_too_large_is_refused() {
        for loads in LOADS {
            assert_eq!(check(&[page("a.html", &format!("<p{loads}\"x\">"))]).len(), 1, "{loads}");
        }
        assert_eq!(check(&[page("a.html", &"x\n".repeat(PAGES_BYTES_MAX))]).len(), 1);
        assert!(check(&[page("a.md", "<script>")]).is_empty());
    }
}
