//! The same vocabulary and the same numbers as scikit-learn, for every option.
//!
//! The test writes matrices, and `compare.py` compares them with scikit-learn's results for the same texts. It needs
//! python3 with its venv module, and the network in its first run; it fails if they are missing. The folder named by
//! `NANDEX_TFIDF_TEXTS`, if set, gives more texts: a document in each line of its files.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its texts must stop")]

mod python;
mod texts;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use nandex_tfidf::tokenise::{Analyser, Tokens, english_stop_words};
use nandex_tfidf::{
    Analysis, Corpus, CorpusConfig, Document, DocumentLimit, DocumentResult, MatrixFiles, Model,
    Norm, RAM_BYTES_MIN, Repeats, Selection, StopWords, Weighting,
};
use serde_json::{Value, json};
use unicode_general_category::{GeneralCategory as Category, get_general_category};

const CONFIG: CorpusConfig = CorpusConfig { ram_bytes: RAM_BYTES_MIN };

/// The number of ranked documents and keywords.
const COUNT: usize = 7;

/// The cases to compare, in a folder.
struct Cases {
    folder: PathBuf,
    cases: BufWriter<File>,
    count: usize,
}

/// Texts, and their file.
struct Texts {
    file: String,
    documents: Vec<Document>,
}

/// The most texts taken from the folder, so that the test ends within a minute or two.
const FOLDER_TEXTS_MAX: usize = 400;

/// The options of a model in addition to the index's analysis.
#[derive(Clone, Copy, Default)]
struct Choice {
    selection: Selection,
    weighting: Weighting,
}

impl Cases {
    fn new(folder: &Path) -> Self {
        let cases = BufWriter::new(File::create(folder.join("cases.jsonl")).unwrap());
        Self { folder: folder.to_path_buf(), cases, count: 0 }
    }

    fn texts<T: AsRef<str>>(&self, name: &str, texts: &[T]) -> Texts {
        let file = format!("{name}.jsonl");
        let mut out = BufWriter::new(File::create(self.folder.join(&file)).unwrap());
        let mut documents = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let document = Document::new(format!("{name}-{number}"), text.as_ref());
            writeln!(out, "{}", json!({"text": document.text})).unwrap();
            documents.push(document);
        }
        out.flush().unwrap();
        Texts { file, documents }
    }

    fn empty(&self, analysis: &Analysis) -> Corpus {
        let path = tempfile::tempdir_in(&self.folder).unwrap().keep().join("index.nandex");
        Corpus::create(path, analysis, CONFIG).unwrap()
    }

    fn corpus(&self, analysis: &Analysis, texts: &Texts) -> Corpus {
        let mut corpus = self.empty(analysis);
        corpus.update(all(&texts.documents), Repeats::Refuse).unwrap();
        corpus
    }

    /// Writes the matrix of these texts, and the case for scikit-learn to compare.
    fn write(&mut self, name: &str, corpus: &Corpus, texts: &Texts, choice: Choice) {
        let model = Model::fit(corpus, &choice.selection, choice.weighting, Some(&self.folder));
        let model = model.unwrap();
        let number = self.count;
        self.count += 1;
        let path = |what: &str| self.folder.join(format!("{number}.{what}"));
        let files = MatrixFiles {
            matrix: path("npz"),
            vocabulary: Some(path("terms.jsonl")),
            documents: None,
        };
        model.write_npz(all(&texts.documents), &files).unwrap();
        let mut case = json!({
            "name": format!("{name} of {}", texts.file),
            "options": options(corpus.analysis(), choice),
            "documents": texts.file,
            "matrix": files.matrix,
            "vocabulary": files.vocabulary,
        });
        if choice.selection.max_features.is_none() {
            add_ranks(&mut case, &model, texts);
        }
        writeln!(self.cases, "{case}").unwrap();
    }
}

fn all(documents: &[Document]) -> impl Iterator<Item = DocumentResult> {
    documents.iter().cloned().map(Ok)
}

/// Adds keywords, and documents ranked by a query.
fn add_ranks(case: &mut Value, model: &Model<'_>, texts: &Texts) {
    let query: String = texts.documents.iter().take(9).map(|it| it.text.clone() + " ").collect();
    let ranks = model.rank(&query, all(&texts.documents), COUNT).unwrap();
    let ranks: Vec<(u64, f64)> = ranks.into_iter().map(|it| (it.number, it.cosine)).collect();
    let mut keywords: Vec<Vec<(String, f64)>> = Vec::new();
    let take = |_: &str, found: &[nandex_tfidf::Keyword]| {
        keywords.push(found.iter().map(|it| (it.term.clone(), it.value)).collect());
        Ok(())
    };
    model.keywords(all(&texts.documents), COUNT, take).unwrap();
    case["query"] = json!(query);
    case["count"] = json!(COUNT);
    case["ranks"] = json!(ranks);
    case["keywords"] = json!(keywords);
}

/// Returns the options under scikit-learn's names.
fn options(analysis: &Analysis, choice: Choice) -> Value {
    let limit = |limit| match limit {
        DocumentLimit::Count(count) => json!(count),
        DocumentLimit::Share(share) => json!(share),
    };
    let Choice { selection, weighting } = choice;
    json!({
        "lowercase": analysis.lowercase,
        "ngram_range": [analysis.ngram_min, analysis.ngram_max],
        "stop_words": match &analysis.stop_words {
            StopWords::None => Value::Null,
            StopWords::English => json!("english"),
            StopWords::List(list) => json!(list),
        },
        "min_df": limit(selection.min_df),
        "max_df": limit(selection.max_df),
        "max_features": selection.max_features,
        "use_idf": weighting.use_idf,
        "smooth_idf": weighting.smooth_idf,
        "sublinear_tf": weighting.sublinear_tf,
        "binary": weighting.binary,
        "norm": match weighting.norm {
            Norm::L1 => json!("l1"),
            Norm::L2 => json!("l2"),
            Norm::None => Value::Null,
        },
    })
}

fn analyses() -> Vec<Analysis> {
    let list = ["the", "dog", "ein", "字字"].map(str::to_owned).into();
    let plain = Analysis::default();
    vec![
        plain.clone(),
        plain.clone().ngrams(1, 2),
        plain.clone().ngrams(1, 3),
        plain.clone().ngrams(2, 3),
        plain.clone().ngrams(3, 3),
        Analysis { lowercase: false, ..plain.clone() },
        Analysis { stop_words: StopWords::English, ..plain.clone() },
        Analysis { stop_words: StopWords::English, ..plain.clone().ngrams(1, 3) },
        Analysis { stop_words: StopWords::List(list), lowercase: false, ..plain.ngrams(1, 2) },
    ]
}

/// Returns each option alone, and some together.
fn choices() -> Vec<(&'static str, Choice)> {
    let weigh = |weighting| Choice { weighting, ..Choice::default() };
    let select = |selection| Choice { selection, ..Choice::default() };
    let (plain, all) = (Weighting::default(), Selection::default());
    let (count, share) = (DocumentLimit::Count, DocumentLimit::Share);
    let middle = Selection { min_df: count(3), max_df: share(0.3), max_features: Some(40) };
    let binary = Weighting { binary: true, ..plain };
    let odd = Weighting { sublinear_tf: true, smooth_idf: false, norm: Norm::L1, ..plain };
    vec![
        ("idf off", weigh(Weighting { use_idf: false, ..plain })),
        ("idf not smooth", weigh(Weighting { smooth_idf: false, ..plain })),
        ("sublinear", weigh(Weighting { sublinear_tf: true, ..plain })),
        ("binary", weigh(binary)),
        ("l1", weigh(Weighting { norm: Norm::L1, ..plain })),
        ("no norm", weigh(Weighting { norm: Norm::None, ..plain })),
        ("sublinear, not smooth, l1", weigh(odd)),
        ("min_df 2", select(Selection { min_df: count(2), ..all })),
        ("min_df share", select(Selection { min_df: share(0.013), ..all })),
        ("max_df 5", select(Selection { max_df: count(5), ..all })),
        ("max_df share", select(Selection { max_df: share(0.2), ..all })),
        ("max_features 1", select(Selection { max_features: Some(1), ..all })),
        ("max_features 100", select(Selection { max_features: Some(100), ..all })),
        ("max_features all", select(Selection { max_features: Some(1 << 40), ..all })),
        ("limits together", select(middle)),
        ("limits together, binary", Choice { selection: middle, weighting: binary }),
    ]
}

/// Checks that an index made by merging and removing equals that of the remaining documents.
fn write_merged(cases: &mut Cases, texts: &Texts) {
    let analysis = Analysis::default().ngrams(1, 2);
    let (left, right) = texts.documents.split_at(texts.documents.len() / 3);
    let extra: Vec<Document> =
        right.iter().map(|it| Document::new(format!("x{}", it.id), it.text.clone())).collect();
    let mut other = cases.empty(&analysis);
    other.update(all(right), Repeats::Refuse).unwrap();
    other.update(all(&extra), Repeats::Refuse).unwrap();
    let mut corpus = cases.empty(&analysis);
    corpus.update(all(left), Repeats::Refuse).unwrap();
    corpus.merge(&other).unwrap();
    corpus.remove(all(&extra)).unwrap();
    cases.write("merged and removed", &corpus, texts, Choice::default());
}

/// Writes the tokens of a text around each assigned character.
fn write_characters(folder: &Path) {
    let analysis = |lowercase| Analysis { lowercase, ..Analysis::default() };
    let analysers = [true, false].map(|it| Analyser::new(&analysis(it)).unwrap());
    let mut out = BufWriter::new(File::create(folder.join("characters.jsonl")).unwrap());
    let mut tokens = Tokens::default();
    for character in '\0'..=char::MAX {
        let category = get_general_category(character);
        if matches!(category, Category::Unassigned | Category::PrivateUse) {
            continue;
        }
        let text = format!("{character}{character} Q{character}q AΣ{character}");
        let [lowered, kept] = [0, 1].map(|which| {
            analysers[which].analyse(&text, &mut tokens);
            let terms = analysers[which].terms(&tokens);
            terms.map(|term| String::from_utf8(term.to_vec()).unwrap()).collect::<Vec<_>>()
        });
        let character = u32::from(character);
        let line = json!({"character": character, "text": text, "lowered": lowered, "kept": kept});
        writeln!(out, "{line}").unwrap();
    }
    out.flush().unwrap();
}

#[test]
fn every_vocabulary_and_number_is_that_of_scikit_learn() {
    let python = python::python();
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Cases::new(folder.path());
    let mut sets = vec![cases.texts("odd", texts::ODD), cases.texts("made", &texts::made(600, 1))];
    if let Some(more) = std::env::var_os("NANDEX_TFIDF_TEXTS") {
        sets.push(cases.texts("folder", &texts::of_folder(Path::new(&more), FOLDER_TEXTS_MAX)));
    }
    for texts in &sets {
        for analysis in analyses() {
            let corpus = cases.corpus(&analysis, texts);
            let name = serde_json::to_string(&analysis).unwrap();
            cases.write(&name, &corpus, texts, Choice::default());
        }
    }
    for texts in &sets[1..] {
        let corpus = cases.corpus(&Analysis::default().ngrams(1, 2), texts);
        for (name, choice) in choices() {
            cases.write(name, &corpus, texts, choice);
        }
        drop(corpus);
        write_merged(&mut cases, texts);
    }
    write_characters(folder.path());
    let words: String = english_stop_words().map(|word| format!("{word}\n")).collect();
    fs::write(folder.path().join("stop_words.txt"), words).unwrap();
    cases.cases.flush().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sklearn/compare.py");
    let mut compare = std::process::Command::new(python);
    let output = python::run(compare.arg(script).arg(folder.path()), "the lines above differ");
    print!("{}", String::from_utf8_lossy(&output.stdout));
}
