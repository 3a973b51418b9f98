//! Files of a small matrix. `tests/sklearn.rs` tests how scipy reads them.

use std::fs;
use std::io::{Cursor, Read};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use ::parquet::file::reader::SerializedFileReader;

use super::*;
use crate::{
    Analysis, Corpus, CorpusConfig, Document, RAM_BYTES_MIN, Repeats, Selection, Weighting,
};
use nandex_corpus::documents::{Fields, Reading, Source};

fn with_model(act: impl FnOnce(&std::path::Path, &Model<'_>, Vec<Document>)) {
    let folder = tempfile::tempdir().unwrap();
    let config = CorpusConfig { ram_bytes: RAM_BYTES_MIN };
    let path = folder.path().join("index");
    let mut corpus = Corpus::create(path, &Analysis::default(), config).unwrap();
    let documents = vec![Document::new("a", "red \"fish\" red"), Document::new("b", "")];
    corpus.update(documents.iter().cloned().map(Ok), Repeats::Refuse).unwrap();
    let model =
        Model::fit(&corpus, &Selection::default(), Weighting::default(), Some(folder.path()));
    let out = tempfile::tempdir().unwrap();
    act(out.path(), &model.unwrap(), documents);
}

#[test]
fn a_matrix_has_its_arrays_and_the_names_of_rows_and_columns() {
    with_model(|folder, model, documents| {
        let files = MatrixFiles {
            matrix: folder.join("matrix.npz"),
            vocabulary: Some(folder.join("terms.jsonl")),
            documents: Some(folder.join("ids.jsonl")),
        };
        let shape = model.write_npz(documents.into_iter().map(Ok), &files).unwrap();
        assert_eq!(shape, MatrixShape { rows: 2, columns: 2, entries: 2 });
        let ids = fs::read_to_string(files.documents.as_ref().unwrap()).unwrap();
        assert_eq!(ids, "{\"row\":0,\"id\":\"a\"}\n{\"row\":1,\"id\":\"b\"}\n");
        let terms = fs::read_to_string(files.vocabulary.as_ref().unwrap()).unwrap();
        let idf = 1.5_f64.ln() + 1.0;
        let line = |column, term| {
            format!("{{\"column\":{column},\"term\":\"{term}\",\"documents\":1,\"idf\":{idf}}}\n")
        };
        assert_eq!(terms, line(0, "fish") + &line(1, "red"));
        let mut zip = zip::ZipArchive::new(fs::File::open(&files.matrix).unwrap()).unwrap();
        let names: Vec<String> = zip.file_names().map(|name| name.unwrap().into_owned()).collect();
        assert_eq!(names, ["indices.npy", "indptr.npy", "format.npy", "shape.npy", "data.npy"]);
        assert_eq!(zip.by_name("indptr.npy").unwrap().size(), 128 + 3 * 4);
        assert_eq!(zip.by_name("data.npy").unwrap().size(), 128 + 2 * 8);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 3, "no temporary files stay");
    });
}

/// Returns the arrays of a matrix, by their names.
fn arrays(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let one = |index| {
        let mut array = zip.by_index(index).unwrap();
        let mut bytes = Vec::new();
        // Its checksum is verified.
        array.read_to_end(&mut bytes).unwrap();
        (array.name().unwrap().into_owned(), bytes)
    };
    (0..5).map(one).collect()
}

#[test]
fn a_matrix_through_a_pipe_has_the_arrays_of_one_in_a_file() {
    // Lengths precede the arrays in a file, and a pipe cannot seek back to them.
    with_model(|folder, model, documents| {
        let file = MatrixFiles {
            matrix: folder.join("matrix.npz"),
            vocabulary: None,
            documents: Some(folder.join("ids")),
        };
        let pipe = MatrixFiles { matrix: folder.join("pipe"), vocabulary: None, documents: None };
        assert!(Command::new("mkfifo").arg(&pipe.matrix).status().unwrap().success());
        let name = pipe.matrix.clone();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(fs::read(name)));
        let documents = || documents.iter().cloned().map(Ok);
        let shape = model.write_npz(documents(), &pipe).unwrap();
        assert_eq!(model.write_npz(documents(), &file).unwrap(), shape);
        let read = receiver.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(arrays(&read), arrays(&fs::read(&file.matrix).unwrap()));
        assert_eq!(fs::read_dir(folder).unwrap().count(), 3);
    });
}

#[test]
fn an_error_in_the_middle_leaves_what_was_there() {
    with_model(|folder, model, documents| {
        let matrix = folder.join("matrix.npz");
        fs::write(&matrix, "old").unwrap();
        let files = MatrixFiles { matrix, vocabulary: None, documents: Some(folder.join("ids")) };
        let error =
            || nandex_corpus::Error::Malformed { document: "c".into(), reason: "bad".into() };
        let documents = documents.into_iter().map(Ok).chain([Err(error())]);
        assert!(model.write_npz(documents, &files).is_err());
        assert_eq!(fs::read_to_string(&files.matrix).unwrap(), "old");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
        let files = MatrixFiles { matrix: folder.join("none/matrix.npz"), ..files };
        let error = model.write_npz([], &files).unwrap_err().to_string();
        assert!(error.contains("none/matrix.npz: there is no folder "), "{error}");
    });
}

#[test]
fn a_matrix_in_parquet_has_ids_and_lists_and_is_read_again() {
    with_model(|folder, model, mut documents| {
        documents.push(Document::new("c", "fish"));
        let (matrix, vocabulary) = (folder.join("m.parquet"), folder.join("v.parquet"));
        let files = ParquetFiles { matrix, vocabulary: Some(vocabulary.clone()) };
        let shape = model.write_parquet(documents.clone().into_iter().map(Ok), &files).unwrap();
        assert_eq!(shape, MatrixShape { rows: 3, columns: 2, entries: 3 });
        let rows = |path: &std::path::Path| -> Vec<String> {
            let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
            reader.into_iter().map(|row| row.unwrap().to_string()).collect()
        };
        let idf = 1.5_f64.ln() + 1.0;
        let length = (idf * idf + 4.0 * idf * idf).sqrt();
        let (one, two) = (idf / length, 2.0 * idf / length);
        let expected = [
            format!("{{id: \"a\", indices: [0, 1], values: [{one}, {two}]}}"),
            "{id: \"b\", indices: [], values: []}".to_owned(),
            "{id: \"c\", indices: [0], values: [1.0]}".to_owned(),
        ];
        assert_eq!(rows(&files.matrix), expected);
        let line = |term| format!("{{term: \"{term}\", documents: 1, idf: {idf}}}");
        assert_eq!(rows(&vocabulary), [line("fish"), line("red")]);
        // Its ids and terms are documents, too.
        let fields = Fields { text: "term".into(), id: Some("documents".into()) };
        let source = Source::Parquet { path: vocabulary, fields };
        let found: Vec<Document> =
            source.documents(Reading::default()).unwrap().map(|it| it.unwrap()).collect();
        assert_eq!(found, [Document::new("1", "fish"), Document::new("1", "red")]);
        let other = Fields { text: "indices.list.element".into(), id: None };
        let refused = Source::Parquet { path: files.matrix.clone(), fields: other };
        let error = refused.documents(Reading::default()).err().unwrap().to_string();
        assert!(error.contains("found lists of INT64; name a column of texts"), "{error}");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    });
}
