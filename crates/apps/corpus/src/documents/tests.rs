//! Sources with good and bad input.

use std::fs;

use super::*;

const SMALL: Reading =
    Reading { decoding: Decoding::Strict, document_bytes_max: 8, content: Content::Text };

fn pairs(documents: impl Iterator<Item = Result<Document>>) -> Vec<(String, String)> {
    documents.map(|it| it.unwrap()).map(|it| (it.id, it.text)).collect()
}

fn owned(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
}

fn json(text: &str, id: Option<&str>) -> JsonLines<&'static [u8]> {
    let fields = Fields { id: id.map(str::to_owned), ..Fields::default() };
    let bytes: &'static [u8] = text.to_owned().leak().as_bytes();
    JsonLines::new(bytes, "in.jsonl", fields, Reading::default())
}

fn first_error(mut documents: impl Iterator<Item = Result<Document>>) -> String {
    documents.find_map(Result::err).expect("an error").to_string()
}

#[test]
fn lines_are_numbered_and_empty_ones_are_documents() {
    let lines = Lines::new(&b"one\r\n\n three\n4\r"[..], "in", Reading::default());
    let expected = owned(&[("1", "one"), ("2", ""), ("3", " three"), ("4", "4\r")]);
    assert_eq!(pairs(lines), expected);
    assert_eq!(pairs(Lines::new(&b""[..], "in", Reading::default())), []);
    assert_eq!(pairs(Lines::new(&b"\n"[..], "in", Reading::default())), owned(&[("1", "")]));
}

#[test]
fn a_line_of_the_limit_passes_and_one_byte_more_is_an_error_with_its_place() {
    let lines = Lines::new(&b"12345678\r\n12345678\n12345678"[..], "in", SMALL);
    assert_eq!(pairs(lines).len(), 3);
    let mut lines = Lines::new(&b"ok\n123456789\nok\n"[..], "in", SMALL);
    assert!(lines.next().unwrap().is_ok());
    let error = lines.next().unwrap().unwrap_err().to_string();
    assert_eq!(error, "document in:2: more than 8 bytes; split it, or raise document_bytes_max");
    assert!(lines.next().is_none(), "what follows is the rest of the long line");
}

#[test]
fn a_line_without_an_end_takes_no_more_memory_than_the_limit() {
    let endless = std::io::BufReader::new(std::io::repeat(b'a'));
    let reading = Reading { document_bytes_max: 1 << 20, ..Reading::default() };
    let error = first_error(Lines::new(endless, "in", reading));
    assert!(error.starts_with("document in:1: more than 1048576 bytes"), "{error}");
}

#[test]
fn bytes_that_are_no_utf8_are_an_error_or_replaced_or_left_out() {
    let bytes = b"fine\nab\xff\xe2\x82cd\n";
    let error = first_error(Lines::new(&bytes[..], "in", Reading::default()));
    let expected = "document in:2: expected UTF-8, found byte 0xff at byte 2; convert it, or read with decoding \
                    errors replaced";
    assert_eq!(error, expected);
    let with = |decoding| {
        let reading = Reading { decoding, ..Reading::default() };
        pairs(Lines::new(&bytes[..], "in", reading)).remove(1).1
    };
    // As Python: b"ab\xff\xe2\x82cd".decode(errors=...).
    assert_eq!(with(Decoding::Replace), "ab\u{fffd}\u{fffd}cd");
    assert_eq!(with(Decoding::Ignore), "abcd");
}

#[test]
fn json_lines_give_text_and_ids_and_skip_other_fields() {
    let first = "{\"text\":\"a \\u00e9\",\"x\":[1,{\"text\":2}],\"id\":\"k\"}";
    let text = format!("{first}\n  \n{{\"id\":7,\"text\":\"b\",\"text\":\"c\"}}");
    assert_eq!(pairs(json(&text, Some("id"))), owned(&[("k", "a é"), ("7", "c")]));
    assert_eq!(pairs(json(&text, None)), owned(&[("1", "a é"), ("3", "c")]));
}

#[test]
fn json_that_has_no_such_text_is_an_error_with_its_line_and_field() {
    let samples = [
        ("{\"body\":\"x\"}", "found no such field; name another field"),
        ("{\"text\":null}", "expected a string in the field \"text\", found null"),
        ("{\"text\":[]}", "found an array"),
        ("[1]", "expected an object"),
        ("{\"text\":\"x\"} {}", "trailing characters"),
        ("{\"text\":\"\\ud800\"}", "expected one JSON object in a line"),
        ("{\"text\":", "EOF while parsing"),
    ];
    for (line, reason) in samples {
        let error = first_error(json(&format!("{{\"text\":\"ok\"}}\n{line}\n"), None));
        assert!(error.starts_with("document in.jsonl:2: ") && error.contains(reason), "{error}");
    }
    let error = first_error(json("{\"text\":\"x\",\"id\":1.5}", Some("id")));
    assert!(error.contains("expected a string or a whole number in the field \"id\""), "{error}");
    assert!(first_error(json("{\"text\":\"x\"}", Some("id"))).contains("no such field"));
}

#[test]
fn after_a_bad_object_the_next_line_is_read() {
    let mut documents = json("{}\n{\"text\":\"ok\"}\n", None);
    assert!(documents.next().unwrap().is_err());
    assert_eq!(documents.next().unwrap().unwrap(), Document::new("2", "ok"));
}

#[test]
fn a_folder_is_read_in_the_order_of_paths_below_it() {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("b.txt", "second");
    put("a/z", "first");
    put("a/b/c", "deep");
    put("c", "");
    std::os::unix::fs::symlink("b.txt", folder.path().join("a/link")).unwrap();
    let found = pairs(Folder::new(folder.path(), Reading::default()).unwrap());
    let expected = [("a/b/c", "deep"), ("a/z", "first"), ("b.txt", "second"), ("c", "")];
    assert_eq!(found, owned(&expected));
}

#[test]
fn a_file_of_a_folder_that_is_too_long_or_no_text_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("long"), "123456789").unwrap();
    let error = first_error(Folder::new(folder.path(), SMALL).unwrap());
    assert!(error.starts_with("document long: more than 8 bytes"), "{error}");
    fs::write(folder.path().join("bad"), b"\x80").unwrap();
    let error = first_error(Folder::new(folder.path(), SMALL).unwrap());
    assert!(
        error.starts_with("document bad: expected UTF-8, found byte 0x80 at byte 0"),
        "{error}"
    );
    let error = Folder::new(folder.path().join("none"), SMALL).unwrap_err().to_string();
    assert!(error.starts_with("cannot list ") && error.contains("none: No such file"), "{error}");
}

/// A row of a file.
type TextAndKey<'t> = (Option<&'t [u8]>, Option<i64>);

/// Creates a file of two row groups with optional columns; `None` is null.
fn parquet_file(folder: &std::path::Path, rows: &[TextAndKey<'_>]) -> PathBuf {
    use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use ::parquet::file::writer::SerializedFileWriter;
    let schema =
        "message m { optional binary text (STRING); optional int64 key; required int32 n; }";
    let schema = ::parquet::schema::parser::parse_message_type(schema).unwrap();
    let path = folder.join("rows.parquet");
    let file = File::create(&path).unwrap();
    let mut file = SerializedFileWriter::new(file, schema.into(), Default::default()).unwrap();
    for rows in rows.chunks(rows.len().div_ceil(2).max(1)) {
        let mut group = file.next_row_group().unwrap();
        let texts: Vec<ByteArray> = rows
            .iter()
            .filter_map(|(text, _)| Some(ByteArray::from(text.as_ref()?.to_vec())))
            .collect();
        let levels: Vec<i16> = rows.iter().map(|(text, _)| text.is_some().into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None).unwrap();
        column.close().unwrap();
        let keys: Vec<i64> = rows.iter().filter_map(|(_, key)| *key).collect();
        let levels: Vec<i16> = rows.iter().map(|(_, key)| key.is_some().into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&keys, Some(&levels), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let numbers: Vec<i32> = rows.iter().map(|_| 7).collect();
        column
            .typed::<::parquet::data_type::Int32Type>()
            .write_batch(&numbers, None, None)
            .unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    file.close().unwrap();
    path
}

fn parquet(path: &std::path::Path, text: &str, id: Option<&str>) -> Result<ParquetRows> {
    let fields = Fields { text: text.into(), id: id.map(str::to_owned) };
    ParquetRows::open(path, &fields, Reading::default())
}

#[test]
fn rows_of_parquet_have_texts_and_ids_over_all_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = (0..1500).map(|n| format!("text {n}")).collect();
    let rows: Vec<TextAndKey<'_>> =
        texts.iter().zip(-5..).map(|(text, key)| (Some(text.as_bytes()), Some(key))).collect();
    let path = parquet_file(folder.path(), &rows);
    let numbered =
        |first: i64| texts.iter().zip(first..).map(|(text, n)| (n.to_string(), text.clone()));
    assert_eq!(
        pairs(parquet(&path, "text", Some("key")).unwrap()),
        numbered(-5).collect::<Vec<_>>()
    );
    assert_eq!(pairs(parquet(&path, "text", None).unwrap()), numbered(1).collect::<Vec<_>>());
    let empty = parquet_file(folder.path(), &[]);
    assert_eq!(pairs(parquet(&empty, "text", None).unwrap()), []);
}

#[test]
fn bad_rows_of_parquet_are_named_after_the_good_ones() {
    let folder = tempfile::tempdir().unwrap();
    let bad: [(TextAndKey<'_>, &str); 3] = [
        ((None, Some(2)), ":2: expected a value in the column \"text\", found null"),
        ((Some(b"x"), None), ":2: expected a value in the column \"key\", found null"),
        ((Some(b"x\xff"), Some(2)), ":2: expected UTF-8, found byte 0xff at byte 1"),
    ];
    for ((text, key), reason) in bad {
        let path = parquet_file(folder.path(), &[(Some(b"ok"), Some(1)), (text, key)]);
        let mut rows = parquet(&path, "text", Some("key")).unwrap();
        assert_eq!(rows.next().unwrap().unwrap(), Document::new("1", "ok"));
        let error = rows.next().unwrap().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(rows.next().is_none());
    }
}

#[test]
fn what_is_not_parquet_or_lacks_the_column_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = parquet_file(folder.path(), &[(Some(b"x"), Some(1))]);
    let refusal =
        |path: &std::path::Path, text: &str| parquet(path, text, None).unwrap_err().to_string();
    let error = refusal(&path, "body");
    assert!(
        error.contains("expected a column \"body\", found [\"text\", \"key\", \"n\"]"),
        "{error}"
    );
    assert!(refusal(&path, "n").contains("found INT32; name a column of texts"));
    fs::write(&path, "no parquet at all").unwrap();
    assert!(refusal(&path, "text").contains("expected a Parquet file"));
    let bytes = [b"PAR1".as_slice(), &[0xff; 40], b"PAR1"].concat();
    fs::write(&path, bytes).unwrap();
    assert!(refusal(&path, "text").contains("expected a Parquet file"));
}

const VECTORS: Reading = Reading {
    decoding: Decoding::Strict,
    document_bytes_max: 1000,
    content: Content::Vector { dimensions: 2 },
};

#[test]
fn vectors_of_lines_and_objects_have_texts_by_which_equal_ones_are_equal() {
    let text = b"[0.1,2]\n[ 1e-1, 2.0 ]\n[-0,1e30]\n";
    let expected = [("1", "[0.1,2.0]"), ("2", "[0.1,2.0]"), ("3", "[0.0,1e+30]")];
    assert_eq!(pairs(Lines::new(&text[..], "t", VECTORS)), owned(&expected));
    let text = b"{\"vector\":[0.1,2],\"text\":\"x\"}\n{\"vector\":[3,-4.5]}\n";
    let fields = Fields { text: "vector".into(), id: None };
    let found = pairs(JsonLines::new(&text[..], "t", fields, VECTORS));
    assert_eq!(found, owned(&[("1", "[0.1,2.0]"), ("2", "[3.0,-4.5]")]));
    assert_eq!(vector_of(&found[1].1).unwrap(), [3.0, -4.5]);
}

#[test]
fn what_is_no_vector_of_that_many_numbers_is_an_error_with_its_place() {
    let lines = [
        ("[1]", "t:1: expected a vector of 2 numbers, found 1"),
        ("[1,2,3]", "found 3"),
        ("[1,1e39]", "expected numbers of 32 bits, found inf"),
        ("[1,\"2\"]", "expected numbers in brackets"),
        ("word", "expected numbers in brackets"),
        ("", "expected numbers in brackets"),
    ];
    for (line, reason) in lines {
        let bytes: &'static [u8] = format!("{line}\n").leak().as_bytes();
        let error = first_error(Lines::new(bytes, "t", VECTORS));
        assert!(error.contains(reason), "{error}");
    }
    let objects = [
        ("{\"text\":[1,null]}", "expected numbers, found null at place 2"),
        (
            "{\"text\":\"[1,2]\"}",
            "expected an array of numbers in the field \"text\", found a string",
        ),
        ("{\"text\":[]}", "expected a vector of 2 numbers, found 0"),
    ];
    for (line, reason) in objects {
        let bytes: &'static [u8] = line.to_owned().leak().as_bytes();
        let error = first_error(JsonLines::new(bytes, "t", Fields::default(), VECTORS));
        assert!(error.contains(reason), "{error}");
    }
}

/// Creates a file with an optional list of optional numbers in each row; `None` is null.
fn vectors_file(folder: &std::path::Path, rows: &[Option<&[Option<f32>]>]) -> PathBuf {
    use ::parquet::file::writer::SerializedFileWriter;
    let schema =
        "message m { optional group v (LIST) { repeated group list { optional float element; } } }";
    let schema = ::parquet::schema::parser::parse_message_type(schema).unwrap();
    let path = folder.join("vectors.parquet");
    let file = File::create(&path).unwrap();
    let mut file = SerializedFileWriter::new(file, schema.into(), Default::default()).unwrap();
    let (mut levels, mut repeats, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        match row {
            None => levels.push(0),
            Some([]) => levels.push(1),
            Some(numbers) => {
                levels.extend(numbers.iter().map(|number| 2 + i16::from(number.is_some())));
                values.extend(numbers.iter().flatten());
            }
        }
        let more = row.map_or(0, |row| row.len().saturating_sub(1));
        repeats.extend(std::iter::once(0).chain(std::iter::repeat_n(1, more)));
    }
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let typed = column.typed::<::parquet::data_type::FloatType>();
    typed.write_batch(&values, Some(&levels), Some(&repeats)).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    path
}

fn vectors(path: &std::path::Path, name: &str) -> Result<ParquetRows> {
    let fields = Fields { text: name.into(), id: None };
    ParquetRows::open(path, &fields, VECTORS)
}

#[test]
fn a_column_of_lists_has_vectors_and_bad_rows_are_named_after_the_good_ones() {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<[Option<f32>; 2]> = (0..700).map(|n| [Some(n as f32), Some(0.5)]).collect();
    let rows: Vec<Option<&[Option<f32>]>> = all.iter().map(|row| Some(&row[..])).collect();
    let path = vectors_file(folder.path(), &rows);
    let expected = (0..700).map(|n| ((n + 1).to_string(), format!("[{n}.0,0.5]")));
    assert_eq!(pairs(vectors(&path, "v").unwrap()), expected.collect::<Vec<_>>());
    let good = [Some(1.0), Some(2.0)];
    let bad: [(Option<&[Option<f32>]>, &str); 4] = [
        (None, ":2: expected a value in the column \"v\", found null"),
        (Some(&[Some(1.0), None]), ":2: expected a value in the column \"v\", found null"),
        (Some(&[Some(1.0)]), ":2: expected a vector of 2 numbers, found 1"),
        (Some(&[]), ":2: expected a value in the column \"v\", found null"),
    ];
    for (row, reason) in bad {
        let path = vectors_file(folder.path(), &[Some(&good), row, Some(&good)]);
        let mut rows = vectors(&path, "v").unwrap();
        assert_eq!(rows.next().unwrap().unwrap(), Document::new("1", "[1.0,2.0]"));
        let error = rows.next().unwrap().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(rows.next().is_none());
    }
    let error = vectors(&path, "w").unwrap_err().to_string();
    assert!(error.contains("expected a column \"w\", found [\"v\"]"), "{error}");
    let texts = parquet_file(folder.path(), &[(Some(b"x"), Some(1))]);
    let error = vectors(&texts, "text").unwrap_err().to_string();
    assert!(error.contains("found BYTE_ARRAY; name a column of vectors"), "{error}");
}
