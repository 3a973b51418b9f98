//! The page is self-contained, has the numbers, is well formed, and does not grow with the device.

use nandex_sim::Spec;
use nandex_sim::report::{figures, html};

use crate::mixed;
use crate::support::{overwrite, random};

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let page = html(&mixed(Spec::plain(), 2000, 1));
    for reference in
        ["http://", "https://", "src=", "href=", "url(", "@import", "<script", "<link", "<iframe"]
    {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn the_page_holds_the_numbers_and_how_they_are_computed() {
    let report = mixed(Spec::plain(), 2000, 1);
    let page = html(&report);
    for section in figures(&report) {
        for figure in section.figures {
            assert!(page.contains(&format!("<dd>{}</dd>", figure.shown)), "{figure:?}");
        }
    }
    for kind in &report.kinds {
        let max = format!("the longest: {} ns", kind.latency.max_ns);
        assert!(page.contains(&max), "{} {max}", kind.kind);
    }
    for field in ["timing.read_ns", "ftl.victim", "flash.page_bytes", "host.depth"] {
        assert!(page.contains(field), "{field}");
    }
    assert!(page.contains("The slowest requests, explained"));
    assert!(page.contains("Units and buses"));
}

/// Checks that every opened element is closed, in order.
fn assert_well_formed(page: &str) {
    const VOID: [&str; 2] = ["meta", "!doctype"];
    let mut open = Vec::new();
    for part in page.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap();
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn every_element_is_closed_on_any_device() {
    for seed in 0..20 {
        let page = html(&mixed(random(seed), 300, seed));
        assert_well_formed(&page);
        assert!(!page.contains("NaN") && !page.contains("inf\""), "seed {seed}");
    }
}

/// Returns the words of a drawing: their left and right ends, and their baselines.
fn words(drawing: &str) -> Vec<(f64, f64, f64)> {
    let number = |text: &str, name: &str| -> f64 {
        let value = text.split_once(&format!("{name}=\"")).unwrap().1;
        value.split('"').next().unwrap().parse().unwrap()
    };
    let extent = |text: &str| {
        let (tag, rest) = text.split_once('>').unwrap();
        // As wide as digits are at 20 px on a narrow page.
        let width = rest.split("</text>").next().unwrap().chars().count() as f64 * 12.0;
        let x = number(tag, " x");
        let before = if tag.contains("\"end\"") { width } else { width / 2.0 };
        (x - before, x - before + width, number(tag, " y"))
    };
    drawing.split("<text").skip(1).map(extent).collect()
}

/// Draws wide charts: drawings that kept 640 px made a narrow page scroll sideways.
#[test]
fn drawings_shrink_and_their_words_stay_apart() {
    let devices = (0..20).map(|seed| mixed(random(seed), 300, seed));
    for report in devices.chain([mixed(Spec::plain(), 2000, 1)]) {
        let page = html(&report);
        let style = page.split("</style>").next().unwrap();
        assert!(style.contains("svg { display: block; width: 100%; }"), "no least width");
        for drawing in page.split("<svg").skip(1) {
            let drawing = drawing.split("</svg>").next().unwrap();
            let words = words(drawing);
            for (index, one) in words.iter().enumerate() {
                assert!(one.0 >= 0.0 && one.1 <= 1000.0 && one.2 >= 14.0, "{one:?} in {drawing}");
                let touches = |it: &&(f64, f64, f64)| {
                    (it.2 - one.2).abs() < 16.0 && it.0 < one.1 && one.0 < it.1
                };
                let touched = words[..index].iter().find(touches);
                assert_eq!(touched, None, "{one:?} in {drawing}");
            }
        }
    }
}

#[test]
fn names_are_words_and_not_markup() {
    let mut spec = Spec::plain();
    spec.name = "<b>bold</b>".into();
    spec.about = "\"quoted\" & <i>".into();
    let page = html(&mixed(spec, 50, 1));
    assert!(page.contains("&lt;b&gt;bold&lt;/b&gt;") && !page.contains("<b>bold"));
    assert_well_formed(&page);
}

#[test]
fn a_page_of_a_large_worn_device_is_no_larger_than_a_screen_needs() {
    let mut spec = Spec::plain();
    (spec.flash.channels, spec.flash.packages, spec.flash.dies) = (16, 4, 2);
    spec.flash.blocks = 256;
    spec.flash.pages = 4;
    let mut ssd = nandex_sim::Ssd::new(spec, nandex_sim::Fill::Sequential).unwrap();
    overwrite(&mut ssd, 400_000, 64, 1);
    let before = nandex_sim::report::SsdBaseline::of(&ssd);
    let keep = nandex_sim::report::Keep { slowest: 2, first: 5000 };
    let mut collector = nandex_sim::report::Collector::new(nandex_sim::Model::now_ns(&ssd), keep);
    ssd.record_spans(100_000);
    crate::support::run_mixed(&mut ssd, 20_000, 64, 2).iter().for_each(|it| collector.note(it));
    let page = html(&collector.report_ssd(&ssd, &before, "much"));
    assert!(page.contains("<h3>Where</h3>"), "erases have a map");
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    assert_well_formed(&page);
}

#[test]
fn what_has_one_value_is_a_sentence_and_no_histogram() {
    let page = html(&mixed(Spec::plain(), 1, 1));
    assert!(page.contains("<p class=\"note\">All 1 took "), "{page}");
    assert!(!page.contains("aria-label=\"distribution of"));
    assert_well_formed(&page);
    let many = html(&mixed(Spec::plain(), 2000, 1));
    assert!(many.contains("aria-label=\"distribution of"));
}

#[test]
fn figures_for_people_have_three_digits_or_are_whole() {
    for section in figures(&mixed(Spec::plain(), 2000, 1)) {
        for figure in section.figures.iter().filter(|figure| figure.shown.contains('.')) {
            for number in figure.shown.split([' ', '/']).filter(|it| it.contains('.')) {
                let digits =
                    number.trim_start_matches(['0', '.']).chars().filter(char::is_ascii_digit);
                assert!(digits.count() <= 3, "{figure:?}");
            }
        }
    }
}
