//! A reader that fails when nothing arrives for too long.

use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// The most bytes of a part, and the most parts that wait.
const PART_BYTES: usize = 64 << 10;
const PARTS_MAX: usize = 4;

/// Reads what a thread has read from a source. Only time in which a caller waits for bytes counts.
pub struct Impatient {
    parts: Receiver<io::Result<Vec<u8>>>,
    part: Vec<u8>,
    /// The number of bytes of the part that were read.
    used: usize,
    silence: Duration,
}

impl Impatient {
    /// Reads from a source that may be silent for at most `silence`. Its thread ends with the source, or with the
    /// process.
    pub fn new(source: impl Read + Send + 'static, silence: Duration) -> Self {
        let (to, parts) = sync_channel(PARTS_MAX);
        thread::spawn(move || read_parts(source, &to));
        Self { parts, part: Vec::new(), used: 0, silence }
    }
}

fn read_parts(mut source: impl Read, to: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut part = vec![0; PART_BYTES];
        let read = match source.read(&mut part) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read,
        };
        let is_last = !matches!(read, Ok(1..));
        let read = read.map(|bytes| {
            part.truncate(bytes);
            part
        });
        // There is no receiver if the stream has failed.
        if to.send(read).is_err() || is_last {
            return;
        }
    }
}

impl Read for Impatient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used == self.part.len() {
            self.used = 0;
            self.part = match self.parts.recv_timeout(self.silence) {
                Ok(part) => part?,
                // The source ended before.
                Err(RecvTimeoutError::Disconnected) => Vec::new(),
                Err(RecvTimeoutError::Timeout) => {
                    let reason = format!("nothing came for {} s", self.silence.as_secs());
                    return Err(io::Error::new(ErrorKind::TimedOut, reason));
                }
            };
        }
        let rest = &self.part[self.used..];
        let bytes = rest.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&rest[..bytes]);
        self.used += bytes;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_read_in_parts_of_any_size_to_its_end() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        let mut reader = Impatient::new(io::Cursor::new(bytes.clone()), Duration::from_secs(60));
        let mut copy = vec![0; 7];
        reader.read_exact(&mut copy).unwrap();
        reader.read_to_end(&mut copy).unwrap();
        assert!(copy == bytes);
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_source_that_says_nothing_fails_after_what_it_said() {
        let (reader, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"words").unwrap();
        let mut reader = Impatient::new(reader, Duration::from_millis(100));
        let mut copy = Vec::new();
        let error = reader.read_to_end(&mut copy).unwrap_err();
        assert_eq!((error.kind(), &copy[..]), (ErrorKind::TimedOut, &b"words"[..]));
    }
}
