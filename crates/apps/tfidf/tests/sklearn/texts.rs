//! Texts for comparisons: texts of unusual characters, texts from a seed, and texts of a folder that the environment
//! names.

use std::fs;
use std::path::Path;

/// Texts with all kinds of characters, and empty ones.
pub const ODD: &[&str] = &[
    "",
    " \t\n\u{a0}\u{3000}",
    "a b c 1 2 3 . !",
    "The quick brown fox jumps over the lazy dog, the DOG.",
    "Don't can't won't it's o'clock rock'n'roll",
    "snake_case __init__ _ __ x_1 _a a_",
    "3.14 1,000 42 007 ½½ ²³ ٣٤٥ १२३ ⅫⅣ ①② 一二三",
    "İstanbul ISTANBUL ıi Iİ ŞİŞLİ",
    "ΟΔΥΣΣΕΥΣ ΣΑΣ ΣΣ Σ ΑΣ. ΑΣ'Σ ΑΣ\u{301} \u{301}ΣΑ ΑΣ\u{ad}Α",
    "Straße STRASSE GROẞ ﬀﬁ ﬅ Ǆ ǅ ǆ ǅA",
    "café cafe\u{301} CAFÉ naïve Ångström Å A\u{30a}",
    "हिन्दी में लिखा विकिपीडिया தமிழ் ภาษาไทย ລາວ",
    "العربية مُحَمَّد עברית שָׁלוֹם",
    "日本語のテキスト カタカナ ｶﾀｶﾅ 한국어 문장 漢字、句読点。",
    "emoji 😀😀 👨\u{200d}👩 x\u{200d}y ❤\u{fe0f} ⓐⓑⓒ 🅰🅱 🄰",
    "zero\u{200b}width soft\u{ad}hyphen joined\u{2060}word \u{feff}bom",
    "ab\0cd null\u{0}byte \u{7f}del \u{1f}\u{1e}",
    "ᾈᾉ ᾼ ΰ ŉ ǰ ẖ ẗ ԱՒ և ﬓ",
    "𝔘𝔫𝔦 𝟙𝟚𝟛 𐐀𐐁𐐨 𞤀𞤁 𠀀𠀁 𑄶𑄷",
    "Ⴀაა ᲐᲑ Აბ Ꭰꭰ ꭱ Ᏸᏸ",
    "the the the fox fox dog",
    "THE and Of it\u{2019}s éé ÉÉ",
    "one",
    "x",
    "ʰʰ ˈˈ ˬˬ ˮˮ ªº ₐₑ ᵃᵇ ꟸꟹ 々々 〇〇 ーー ゛゛ ゝゝ",
    "e\u{0301}e\u{0301} \u{0345}\u{0345} a\u{0345}b ⅰⅱ ↀↁ 〡〢 ৴৵ ௰௱",
];

/// A deterministic generator of numbers.
pub struct Numbers(u64);

impl Numbers {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The letters of the words.
const LETTERS: [&str; 12] = ["a", "E", "i", "n", "ß", "Σ", "ж", "é", "字", "_", "7", "T"];

/// Creates texts of words from a seed; some words are much more frequent than others.
pub fn made(count: usize, seed: u64) -> Vec<String> {
    let mut numbers = Numbers::new(seed);
    let stop = ["the", "of", "and", "in", "to"];
    let text = |_| {
        let words = numbers.below(60);
        let word = |_| {
            if numbers.below(4) == 0 {
                return stop[numbers.below(5) as usize].to_owned();
            }
            // The rank of a word is the product of two numbers, so that low ranks are frequent.
            let rank = (1 + numbers.below(60)) * (1 + numbers.below(60));
            spell(rank)
        };
        (0..words)
            .map(word)
            .collect::<Vec<_>>()
            .join([" ", ", ", "-", "  "][numbers.below(4) as usize])
    };
    (0..count).map(text).collect()
}

fn spell(mut rank: u64) -> String {
    let mut word = String::new();
    while rank > 0 {
        word += LETTERS[(rank % 12) as usize];
        rank /= 12;
    }
    word
}

/// Returns the lines of all files of a folder, at most `count`.
pub fn of_folder(folder: &Path, count: usize) -> Vec<String> {
    let files = fs::read_dir(folder).expect("a folder of text files");
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let texts = paths.iter().filter_map(|path| fs::read_to_string(path).ok());
    let lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .take(count)
        .collect();
    assert!(!lines.is_empty(), "{} has no text", folder.display());
    lines
}
