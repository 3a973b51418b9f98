//! Tokens and n-grams of texts with results known from Python.

use proptest::prelude::*;

use super::*;
use crate::StopWords;

fn terms_of(analysis: &Analysis, text: &str) -> Vec<String> {
    let analyser = Analyser::new(analysis).unwrap();
    let mut tokens = Tokens::default();
    analyser.analyse(text, &mut tokens);
    let owned = |term: &[u8]| String::from_utf8(term.to_vec()).unwrap();
    analyser.terms(&tokens).map(owned).collect()
}

fn terms(text: &str) -> Vec<String> {
    terms_of(&Analysis::default(), text)
}

#[test]
fn tokens_are_runs_of_two_or_more_word_characters_in_lower_case() {
    assert_eq!(
        terms("A quick-brown FOX, x_y 42 7 é éé"),
        ["quick", "brown", "fox", "x_y", "42", "éé"]
    );
    assert_eq!(terms(""), [""; 0]);
    assert_eq!(terms("a b c . !"), [""; 0]);
    assert_eq!(terms("don't can_t __"), ["don", "can_t", "__"]);
}

#[test]
fn lower_case_follows_the_full_mappings_and_the_final_sigma() {
    // The dot of a lowered İ is a combining mark, which is not a word character.
    assert_eq!(terms("İstanbul"), ["stanbul"]);
    assert_eq!(terms("ΟΔΟΣ ΣΑΣ"), ["οδος", "σας"]);
    assert_eq!(terms("STRASSE Straße ẞẞ"), ["strasse", "straße", "ßß"]);
    assert_eq!(terms("ǅǅ ΑΙ ᾈᾈ"), ["ǆǆ", "αι", "ᾀᾀ"]);
}

#[test]
fn without_lower_case_letters_stay() {
    let analysis = Analysis { lowercase: false, ..Analysis::default() };
    assert_eq!(terms_of(&analysis, "Red RED ΟΔΟΣ İİ"), ["Red", "RED", "ΟΔΟΣ", "İİ"]);
}

#[test]
fn letters_and_numbers_of_all_scripts_are_word_characters_and_marks_are_none() {
    assert_eq!(terms("日本語 ½½ ⅫⅫ ²³ ٣٤ ➀➁"), ["日本語", "½½", "ⅻⅻ", "²³", "٣٤", "➀➁"]);
    // Other_Alphabetic, which Rust's is_alphanumeric takes and Python does not.
    assert_eq!(terms("aaͅbb ⓐⓑ"), ["aa", "bb"]);
    // The vowel signs of Devanagari are marks.
    assert_eq!(terms("हिन्दी"), [""; 0]);
}

#[test]
fn stop_words_leave_before_ngrams_are_made() {
    let stop_words = StopWords::English;
    let analysis = Analysis { stop_words, ..Analysis::default().ngrams(2, 3) };
    assert_eq!(terms_of(&analysis, "The cat and the hat"), ["cat hat"]);
    let list = ["cat", "HAT"].map(str::to_owned).into();
    let analysis = Analysis { stop_words: StopWords::List(list), ..Analysis::default() };
    assert_eq!(terms_of(&analysis, "Cat HAT"), ["hat"]);
}

#[test]
fn the_english_list_has_the_318_words_in_order() {
    let words: Vec<&str> = english_stop_words().collect();
    assert_eq!(words.len(), 318);
    assert!(words.is_sorted());
    assert_eq!((words[0], words[317]), ("a", "yourselves"));
}

#[test]
fn ngrams_are_neighbours_joined_by_a_space_the_shortest_first() {
    let found = terms_of(&Analysis::default().ngrams(1, 3), "aa bb cc");
    assert_eq!(found, ["aa", "bb", "cc", "aa bb", "bb cc", "aa bb cc"]);
    assert_eq!(terms_of(&Analysis::default().ngrams(3, 5), "aa bb cc"), ["aa bb cc"]);
    assert_eq!(terms_of(&Analysis::default().ngrams(4, 5), "aa bb cc"), [""; 0]);
}

#[test]
fn a_key_is_the_published_hash_of_the_term() {
    // XXH3_128bits of no bytes, from the specification's reference implementation.
    let hash = 0x99aa_06d3_0147_98d8_6001_c324_468d_497f_u128;
    assert_eq!(TermKey::of(b"").0, hash.to_le_bytes());
}

/// The slow way: lower case of everything, then runs of word characters.
fn slow_terms(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let runs = lower.split(|c: char| !is_word(c));
    runs.filter(|run| run.chars().count() >= 2).map(str::to_owned).collect()
}

proptest! {
    #[test]
    fn the_fast_way_finds_what_the_slow_way_finds(text in "\\PC{0,60}") {
        prop_assert_eq!(terms(&text), slow_terms(&text));
    }

    #[test]
    fn and_so_it_does_around_sigmas_and_marks(text in "[aAbΣσς'.\u{345}\u{301}İß 1_]{0,30}") {
        prop_assert_eq!(terms(&text), slow_terms(&text));
    }

    #[test]
    fn memory_of_an_earlier_text_leaves_no_trace(first in "\\PC{0,60}", second in "[a-z ]{0,40}") {
        let analyser = Analyser::new(&Analysis::default().ngrams(1, 2)).unwrap();
        let (mut used, mut new) = (Tokens::default(), Tokens::default());
        analyser.analyse(&first, &mut used);
        analyser.analyse(&second, &mut used);
        analyser.analyse(&second, &mut new);
        prop_assert!(analyser.terms(&used).eq(analyser.terms(&new)));
    }
}
