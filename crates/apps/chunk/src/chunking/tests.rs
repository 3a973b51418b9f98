//! Laws of every chunker, and golden cuts that pin the boundaries.

use std::io::Read;

use proptest::prelude::*;

use super::*;

/// Returns reproducible noise: xorshift64*.
pub(super) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let step = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes()[7]
    };
    std::iter::repeat_with(step).take(bytes).collect()
}

fn lengths(chunking: &Chunking, data: &[u8]) -> Vec<usize> {
    chunking.split(data).map(<[u8]>::len).collect()
}

/// A stream that returns at most `step` bytes per read, and is interrupted before each.
struct Dribble<'a> {
    rest: &'a [u8],
    step: usize,
    interrupted: bool,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let bytes = self.step.min(buffer.len()).min(self.rest.len());
        let (now, later) = self.rest.split_at(bytes);
        buffer[..bytes].copy_from_slice(now);
        self.rest = later;
        Ok(bytes)
    }
}

fn streamed(chunking: &Chunking, data: &[u8], read: usize, step: usize, buffer: usize) -> Vec<u8> {
    let mut buffer = ChunkBuffer::with_sizes(chunking, read, buffer);
    let mut source = Dribble { rest: data, step, interrupted: false };
    let mut laid_out = Vec::new();
    let take = |chunk: &[u8]| {
        laid_out.extend(u32::try_from(chunk.len()).unwrap().to_le_bytes());
        laid_out.extend(chunk);
        std::ops::ControlFlow::Continue(())
    };
    assert!(buffer.for_each_chunk(&mut source, take).unwrap().is_continue());
    laid_out
}

fn whole(chunking: &Chunking, data: &[u8]) -> Vec<u8> {
    let framed =
        |chunk: &[u8]| [&u32::try_from(chunk.len()).unwrap().to_le_bytes()[..], chunk].concat();
    chunking.split(data).flat_map(framed).collect()
}

fn any_chunking() -> impl Strategy<Value = Chunking> {
    let chunker = prop::sample::select(&Chunker::ALL[..]);
    let average = prop::sample::select(&[256_usize, 512, 1024][..]);
    (chunker, average).prop_map(|(chunker, average)| Chunking::new(chunker, average).unwrap())
}

/// Returns noise with runs of equal bytes in it, so that both short and longest chunks occur.
fn any_data() -> impl Strategy<Value = Vec<u8>> {
    let part = (0_usize..6000, 0_u64..5, any::<bool>());
    prop::collection::vec(part, 0..5).prop_map(|parts| {
        let part = |(bytes, seed, noisy): (usize, u64, bool)| {
            if noisy { noise(bytes, seed) } else { vec![seed.to_le_bytes()[0]; bytes] }
        };
        parts.into_iter().flat_map(part).collect()
    })
}

proptest! {
    #[test]
    fn a_stream_is_cut_as_the_file_in_one_piece(
        chunking in any_chunking(),
        data in any_data(),
        read in 1_usize..3000,
        step in 1_usize..3000,
        space in 0_usize..20_000,
    ) {
        prop_assert_eq!(streamed(&chunking, &data, read, step, space), whole(&chunking, &data));
    }

    #[test]
    fn chunks_laid_end_to_end_are_the_data_and_keep_their_bounds(
        chunking in any_chunking(),
        data in any_data(),
    ) {
        let chunks: Vec<&[u8]> = chunking.split(&data).collect();
        prop_assert!(chunks.concat() == data);
        prop_assert!(chunks.iter().all(|chunk| chunk.len() <= chunking.max_bytes()));
        let all_but_last = &chunks[..chunks.len().saturating_sub(1)];
        prop_assert!(all_but_last.iter().all(|chunk| chunk.len() >= chunking.min_bytes()));
        prop_assert!(chunks.last().is_none_or(|chunk| !chunk.is_empty()));
    }
}

#[test]
fn taking_may_break_off_between_chunks() {
    let chunking = Chunking::new(Chunker::Fixed, 256).unwrap();
    let mut taken = 0;
    let take = |_: &[u8]| {
        taken += 1;
        if taken == 2 {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    };
    let flow = ChunkBuffer::new(&chunking).for_each_chunk(&mut &[0; 2560][..], take).unwrap();
    assert!(flow.is_break());
    assert_eq!(taken, 2);
}

#[test]
fn golden_cuts_of_fastcdc_are_those_of_the_crate_and_stay() {
    let data = noise(20_000, 1);
    let chunking = Chunking::new(Chunker::FastCdc, 1024).unwrap();
    let theirs: Vec<usize> =
        ::fastcdc::v2020::FastCDC::new(&data, 256, 1024, 8192).map(|chunk| chunk.length).collect();
    assert_eq!(lengths(&chunking, &data), theirs);
    assert_eq!(lengths(&chunking, &data), GOLDEN_FASTCDC);
}

#[test]
fn golden_cuts_of_rabin_stay() {
    let chunking = Chunking::new(Chunker::Rabin, 1024).unwrap();
    assert_eq!(lengths(&chunking, &noise(20_000, 1)), GOLDEN_RABIN);
}

#[test]
fn content_defined_cuts_survive_an_insertion_and_fixed_ones_do_not() {
    let data = noise(200_000, 3);
    let mut shifted = data.clone();
    shifted.insert(1000, 42);
    for chunker in Chunker::ALL {
        let chunking = Chunking::new(chunker, 1024).unwrap();
        let before: std::collections::HashSet<&[u8]> = chunking.split(&data).collect();
        let kept = chunking.split(&shifted).filter(|chunk| before.contains(chunk)).count();
        let share = kept as f64 / before.len() as f64;
        assert_eq!(share > 0.9, chunker != Chunker::Fixed, "{chunker}: {share}");
        assert!(chunker != Chunker::Fixed || share < 0.1, "{chunker}: {share}");
    }
}

#[test]
fn the_mean_chunk_of_noise_is_what_the_docs_say() {
    let data = noise(4 << 20, 5);
    for (chunker, low, high) in [(Chunker::FastCdc, 1.1, 1.5), (Chunker::Rabin, 1.15, 1.35)] {
        let chunking = Chunking::new(chunker, 1024).unwrap();
        let mean = data.len() as f64 / chunking.split(&data).count() as f64 / 1024.0;
        assert!((low..high).contains(&mean), "{chunker}: {mean}");
    }
}

#[test]
fn every_allowed_average_works_and_no_other() {
    for chunker in Chunker::ALL {
        for bits in 8..=20 {
            let chunking = Chunking::new(chunker, 1 << bits).unwrap();
            assert_eq!(chunking.split(&[1, 2, 3]).count(), 1);
            assert_eq!(chunking.split(&[]).count(), 0);
        }
        for wrong in [0, 128, 1000, 1 << 21] {
            assert!(
                matches!(Chunking::new(chunker, wrong), Err(Error::Average { found }) if found == wrong)
            );
        }
        assert_eq!(chunker.name().parse::<Chunker>().unwrap(), chunker);
    }
    assert!("gear".parse::<Chunker>().unwrap_err().to_string().contains("fastcdc, rabin, fixed"));
}

const GOLDEN_FASTCDC: &[usize] = &[
    285, 802, 1112, 592, 906, 1860, 1285, 1551, 1275, 742, 1509, 317, 759, 1660, 681, 357, 1184,
    1569, 1098, 451, 5,
];
const GOLDEN_RABIN: &[usize] =
    &[792, 552, 2015, 521, 712, 939, 468, 1643, 545, 2231, 462, 1182, 2025, 760, 1183, 616, 3354];
