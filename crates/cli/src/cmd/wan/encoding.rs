//! The chunking and compression of a stream.

use anyhow::Result;
use nandex_dedup::Chunker;
use nandex_wan::EncodeOptions;

use crate::size;

/// The options of an encoder; a decoder needs none.
#[derive(Debug, clap::Args)]
pub struct EncodeArgs {
    /// Average chunk, a power of two from 1KiB to 64KiB; streams find each other's chunks only if they are cut alike
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk)]
    avg: Option<u64>,
    /// Chunking of the stream: fastcdc, rabin or fixed
    #[arg(long)]
    chunker: Option<Chunker>,
    /// Level of zstd for new content, 1 to 19
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=19))]
    level: Option<i32>,
}

/// Reads the length of an average chunk, before a cache is made for it.
fn parse_chunk(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        found @ 1024..=65_536 => Ok(found),
        found => Err(format!("{found} bytes; expected 1024 to 65536, a power of two")),
    }
}

impl EncodeArgs {
    /// Returns the options.
    ///
    /// # Errors
    /// A chunk that exceeds the address space.
    pub fn options(&self) -> Result<EncodeOptions> {
        let usual = EncodeOptions::default();
        let average = self.avg.map(usize::try_from).transpose()?;
        Ok(EncodeOptions {
            chunker: self.chunker.unwrap_or(usual.chunker),
            chunk_bytes: average.unwrap_or(usual.chunk_bytes),
            level: self.level.unwrap_or(usual.level),
            ..usual
        })
    }
}
