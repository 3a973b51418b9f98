//! A line of a trace, and its requests.

use super::{Columns, TraceFormat, TraceOperation, TraceRequest};

/// The most blocks that a request of an ARC trace may contain.
const BLOCKS_MAX: u64 = 1 << 16;

/// The most repetitions of a request in one line.
const COUNT_MAX: u64 = 1 << 20;

/// The bytes of a block of an ARC trace: 512 or 4096 by the trace, which does not say; a page here.
const BLOCK_BYTES: u64 = 4096;

/// Parses a line; the first line of a format with named columns defines these, and has no request.
///
/// # Errors
/// The expected and the found text.
pub fn parse_line(
    format: TraceFormat,
    columns: &mut Columns,
    line: &str,
) -> Result<Vec<TraceRequest>, String> {
    match format {
        TraceFormat::Ibm => ibm(line).map(|request| vec![request]),
        TraceFormat::Twitter => twitter(line).map(|request| vec![request]),
        TraceFormat::Meta => meta(columns, line),
        TraceFormat::Arc => arc(line),
    }
}

fn number(what: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected {what}, a whole number, found {text:?}"))
}

fn ibm(line: &str) -> Result<TraceRequest, String> {
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    let (&[time, operation, key], rest) = fields.split_first_chunk::<3>().ok_or_else(|| {
        format!("expected `milliseconds operation object [size [first last]]`, found {line:?}")
    })?;
    number("milliseconds", time)?;
    let operation = match operation {
        "REST.GET.OBJECT" => TraceOperation::Get,
        "REST.PUT.OBJECT" | "REST.COPY.OBJECT" => TraceOperation::Put,
        "REST.HEAD.OBJECT" => TraceOperation::Exist,
        "REST.DELETE.OBJECT" => TraceOperation::Delete,
        other => {
            return Err(format!(
                "expected REST.GET, PUT, COPY, HEAD or DELETE.OBJECT, found {other:?}"
            ));
        }
    };
    let mut numbers = rest.iter().map(|text| number("a size or an offset", text));
    let value_bytes = numbers.next().transpose()?;
    let offsets = numbers.collect::<Result<Vec<_>, _>>()?;
    if !matches!(offsets.len(), 0 | 2) {
        return Err(format!("expected no offsets or two behind the size, found {}", offsets.len()));
    }
    Ok(TraceRequest { operation, key: key.into(), value_bytes, count: 1 })
}

fn twitter(line: &str) -> Result<TraceRequest, String> {
    // Keys may have commas: one field precedes them, and five follow.
    let (time, rest) = line.split_once(',').ok_or_else(|| seven(line))?;
    number("seconds", time)?;
    let behind: Vec<_> = rest.rsplitn(6, ',').collect();
    let [ttl, operation, client, value, key_size, key] = behind[..] else {
        return Err(seven(line));
    };
    for (what, text) in [("a time to live", ttl), ("a client", client), ("key bytes", key_size)] {
        number(what, text)?;
    }
    let operation = match operation {
        "get" | "gets" => TraceOperation::Get,
        "set" | "cas" => TraceOperation::Put,
        "add" => TraceOperation::Add,
        "replace" | "incr" | "decr" => TraceOperation::Replace,
        "append" | "prepend" => TraceOperation::Append,
        "delete" => TraceOperation::Delete,
        other => {
            return Err(format!(
                "expected get, gets, set, add, replace, cas, append, prepend, delete, incr or decr, found {other:?}"
            ));
        }
    };
    let value_bytes = Some(number("value bytes", value)?);
    Ok(TraceRequest { operation, key: key.into(), value_bytes, count: 1 })
}

fn seven(line: &str) -> String {
    format!("expected `seconds,key,key bytes,value bytes,client,operation,ttl`, found {line:?}")
}

fn meta(columns: &mut Columns, line: &str) -> Result<Vec<TraceRequest>, String> {
    let fields: Vec<_> = line.split(',').map(str::trim).collect();
    if columns.0.is_empty() {
        for name in ["key", "op", "size"] {
            if !fields.contains(&name) {
                return Err(format!("expected names of columns with {name:?}, found {line:?}"));
            }
        }
        columns.0 = fields.iter().map(|name| (*name).to_owned()).collect();
        return Ok(Vec::new());
    }
    if fields.len() != columns.0.len() {
        return Err(format!("expected {} fields, found {}", columns.0.len(), fields.len()));
    }
    let find = |name: &str| columns.0.iter().position(|it| it == name).map(|at| fields[at]);
    let field = |name: &str| find(name).unwrap_or_default();
    let operation = match field("op") {
        "GET" | "GET_LEASE" => TraceOperation::Get,
        "SET" | "SET_LEASE" => TraceOperation::Put,
        "DELETE" => TraceOperation::Delete,
        other => return Err(format!("expected GET, SET, DELETE or their leases, found {other:?}")),
    };
    let count = find("op_count").map(|text| number("a count of operations", text)).transpose()?;
    let count = count.unwrap_or(1);
    if !(1..=COUNT_MAX).contains(&count) {
        return Err(format!("expected 1 to {COUNT_MAX} operations, found {count}"));
    }
    let value_bytes = Some(number("bytes of the value", field("size"))?);
    Ok(vec![TraceRequest { operation, key: field("key").into(), value_bytes, count }])
}

fn arc(line: &str) -> Result<Vec<TraceRequest>, String> {
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    let [first, blocks, ignored, request] = fields[..] else {
        return Err(format!("expected `block blocks ignored number`, found {line:?}"));
    };
    let (first, blocks) = (number("a block", first)?, number("blocks", blocks)?);
    number("a number that is ignored", ignored)?;
    number("the request's number", request)?;
    if blocks > BLOCKS_MAX || first.checked_add(blocks).is_none() {
        return Err(format!(
            "expected at most {BLOCKS_MAX} blocks, found {blocks} from {first} on"
        ));
    }
    let request = |block: u64| TraceRequest {
        operation: TraceOperation::Get,
        key: block.to_be_bytes().into(),
        value_bytes: Some(BLOCK_BYTES),
        count: 1,
    };
    Ok((first..first + blocks).map(request).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(format: TraceFormat, line: &str) -> Result<TraceRequest, String> {
        parse_line(format, &mut Columns::default(), line).map(|mut all| all.remove(0))
    }

    #[test]
    fn lines_as_publishers_write_them_are_read() {
        let get = one(TraceFormat::Ibm, "1219008 REST.GET.OBJECT 8d4fcda3d675bac9 1056 0 1055");
        let get = get.unwrap();
        assert_eq!((get.operation, get.value_bytes), (TraceOperation::Get, Some(1056)));
        assert_eq!(get.key, b"8d4fcda3d675bac9");
        let head = one(TraceFormat::Ibm, "1221974 REST.HEAD.OBJECT 39d177fb735ac5df").unwrap();
        assert_eq!((head.operation, head.value_bytes), (TraceOperation::Exist, None));
        let put = one(TraceFormat::Ibm, "1232437 REST.PUT.OBJECT 3b8255e0609a700d 1456").unwrap();
        assert_eq!(put.operation, TraceOperation::Put);
        let set = one(TraceFormat::Twitter, "0,q:q:1:8WTfjZU14ee,17,213,4,set,3600").unwrap();
        assert_eq!((set.operation, set.value_bytes), (TraceOperation::Put, Some(213)));
        let comma = one(TraceFormat::Twitter, "0,q,with,17,0,4,get,0").unwrap();
        assert_eq!(comma.key, b"q,with");
        let blocks = parse_line(TraceFormat::Arc, &mut Columns::default(), "417 3 0 5").unwrap();
        assert_eq!(blocks.len(), 3);
        assert_eq!(blocks[2].key, 419u64.to_be_bytes());
    }

    #[test]
    fn columns_are_found_by_their_names_in_any_order() {
        let mut columns = Columns::default();
        let header = "op_time,key,key_size,op,op_count,size,cache_hits,ttl";
        let mut parse = |line: &str| parse_line(TraceFormat::Meta, &mut columns, line);
        assert_eq!(parse(header).unwrap(), []);
        let got = parse("10,k1,24,GET,3,1200,1,0").unwrap().remove(0);
        assert_eq!(
            (got.operation, got.count, got.value_bytes),
            (TraceOperation::Get, 3, Some(1200))
        );
        assert!(parse("10,k1,24,GET,0,1200,1,0").is_err());
        assert!(parse("10,k1,24,GET").unwrap_err().contains("expected 8 fields"));
        let mut older = Columns::default();
        let mut parse = |line: &str| parse_line(TraceFormat::Meta, &mut older, line);
        parse("key,op,size,op_count,key_size").unwrap();
        assert_eq!(parse("k,DELETE,0,1,9").unwrap()[0].operation, TraceOperation::Delete);
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        let wrong = [
            (TraceFormat::Ibm, "now REST.GET.OBJECT 8d4f 10"),
            (TraceFormat::Ibm, "1 REST.LIST.OBJECT 8d4f 10"),
            (TraceFormat::Ibm, "1 REST.GET.OBJECT"),
            (TraceFormat::Ibm, "1 REST.GET.OBJECT 8d4f 10 0"),
            (TraceFormat::Ibm, "1 REST.GET.OBJECT 8d4f ten"),
            (TraceFormat::Twitter, "0,key,3,10,1,get"),
            (TraceFormat::Twitter, "0,key,3,10,1,fetch,0"),
            (TraceFormat::Twitter, "0,key,3,-1,1,get,0"),
            (TraceFormat::Meta, "a,b,c"),
            (TraceFormat::Arc, "1 2 3"),
            (TraceFormat::Arc, "1 99999999 0 0"),
            (TraceFormat::Arc, "18446744073709551615 1 0 0"),
        ];
        for (format, line) in wrong {
            let error = one(format, line).unwrap_err();
            assert!(error.contains("expected"), "{line}: {error}");
        }
    }
}
