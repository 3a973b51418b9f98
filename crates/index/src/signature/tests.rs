//! Signatures compared with those of other implementations, with the sets that they represent, and with invalid bytes.

use proptest::prelude::*;

use super::*;
use crate::Error;

const EVERY: [Scheme; 5] = [
    Scheme::Fast,
    Scheme::DatasketchLegacy,
    Scheme::DatasketchAffine,
    Scheme::Rensa,
    Scheme::RensaBuckets,
];

fn minhash(scheme: Scheme, permutations: u32, seed: u64) -> Family {
    let bands = Bands { count: permutations / 4, rows: 4 };
    Family::MinHash { permutations, bands, scheme, seed }
}

fn samples() -> Vec<Family> {
    let mut families = EVERY.map(|scheme| minhash(scheme, 64, 7)).to_vec();
    let simhash = |bits| Family::SimHash { bits, distance: 3 };
    families.extend([simhash(SimHashBits::Bits64), simhash(SimHashBits::Bits128)]);
    let (dimensions, tables, projections) = (16, 6, 4);
    families.push(Family::PStable { dimensions, tables, projections, width: 4.0, seed: 7 });
    families
}

fn values(family: &Family, hashes: &[u64]) -> Vec<u32> {
    let signature = family.sketcher().unwrap().of_hashes(hashes).unwrap();
    let Signature::MinHash(values) = signature else { panic!("{signature:?}") };
    values
}

fn keys(sketcher: &Sketcher, signature: &Signature) -> Vec<u64> {
    let mut keys = Vec::new();
    sketcher.bucket_keys(signature, &mut keys).unwrap();
    keys
}

#[test]
fn minhashes_are_the_smallest_permuted_hashes_however_many_there_are() {
    for scheme in EVERY {
        let family = minhash(scheme, 16, 3);
        let all: Vec<u64> = (0..11).map(|n: u64| Scheme::Fast.hash(&n.to_le_bytes())).collect();
        let each: Vec<Vec<u32>> = all.iter().map(|hash| values(&family, &[*hash])).collect();
        for count in 0..=all.len() {
            let expected: Vec<u32> = (0..16)
                .map(|way| each[..count].iter().map(|it| it[way]).min().unwrap_or(u32::MAX))
                .collect();
            assert_eq!(values(&family, &all[..count]), expected, "{scheme:?} of {count}");
        }
    }
}

/// The results of datasketch 2.0.0 and rensa 0.4.1 and 0.5.0 for these shingles, one of them empty; see the
/// application's tests for more.
#[test]
fn signatures_are_those_of_others() {
    let shingles = ["the red fish", "red fish saw", "fish saw é", "a", ""];
    let cases: [(Scheme, u64, [u32; 8]); 5] = [
        (
            Scheme::DatasketchLegacy,
            1,
            [68716106, 478268806, 841509945, 155585665, 27338559, 665089795, 68125179, 306660385],
        ),
        (
            Scheme::DatasketchLegacy,
            4_294_967_295,
            [
                397438395, 191692235, 243287119, 604824919, 359159842, 1064921620, 586345263,
                212707007,
            ],
        ),
        (
            Scheme::DatasketchAffine,
            1,
            [
                178168596, 30139449, 194310189, 1818646738, 887692455, 1976192196, 159248446,
                2250907539,
            ],
        ),
        (
            Scheme::Rensa,
            42,
            [
                1177720353, 18519924, 819115885, 86824378, 757638960, 2256299397, 44236299,
                2155353320,
            ],
        ),
        (
            Scheme::RensaBuckets,
            42,
            [
                590195858, 74671487, 2183381507, 978773851, 3294845453, 3312877916, 2051556142,
                282697475,
            ],
        ),
    ];
    for (scheme, seed, expected) in cases {
        let hashes = shingles.map(|shingle| scheme.hash(shingle.as_bytes()));
        assert_eq!(values(&minhash(scheme, 8, seed), &hashes), expected, "{scheme:?} {seed}");
    }
    // Another number of values, and a set that fills them all in the first round.
    let hashes = |texts: &[String]| -> Vec<u64> {
        texts.iter().map(|text| Scheme::RensaBuckets.hash(text.as_bytes())).collect()
    };
    let few = shingles.map(str::to_owned).to_vec();
    let bands = Bands { count: 1, rows: 6 };
    let (scheme, seed) = (Scheme::RensaBuckets, 42);
    let six = Family::MinHash { permutations: 6, bands, scheme, seed };
    let expected = [74671487, 173853271, 978773851, 3259169465, 2051556142, 282697475];
    assert_eq!(values(&six, &hashes(&few)), expected);
    let many: Vec<String> = few.into_iter().chain((0..100).map(|it| format!("w{it}"))).collect();
    let expected = [43550065, 74671487, 35523956, 109481536, 7626678, 5459835, 183869183, 23055805];
    assert_eq!(values(&minhash(scheme, 8, seed), &hashes(&many)), expected);
}

/// One permutation with the seed 42, of texts of all lengths that rensa's hash distinguishes.
#[test]
fn texts_of_all_lengths_have_the_values_of_rensa() {
    let lengths = [
        ("a", 1994760501),
        ("abc", 44656847),
        ("abcd", 1316215656),
        ("abcdefg", 171256928),
        ("abcdefgh", 3700962638),
        ("abcdefghijklmnop", 3032182842),
        ("abcdefghijklmnopq", 1485323041),
        ("abcdefghijklmnopqrstuvwxyz012345", 797414045),
        ("abcdefghijklmnopqrstuvwxyz0123456", 982669689),
    ];
    for (text, expected) in lengths {
        let hash = Scheme::Rensa.hash(text.as_bytes());
        assert_eq!(values(&minhash(Scheme::Rensa, 8, 42), &[hash])[0], expected, "{text}");
    }
}

#[test]
fn bands_are_those_of_datasketch() {
    let even = ErrorWeights::default();
    let recall = ErrorWeights { false_positives: 0.25, false_negatives: 0.75 };
    let cases = [
        (0.8, 128, even, (9, 13)),
        (0.5, 128, even, (25, 5)),
        (0.9, 128, even, (5, 25)),
        (0.9, 64, even, (3, 21)),
        (0.1, 128, even, (64, 2)),
        (0.7, 256, even, (25, 10)),
        (0.8, 128, recall, (11, 11)),
    ];
    for (threshold, permutations, weights, (count, rows)) in cases {
        let found = Bands::optimal(threshold, permutations, weights).unwrap();
        assert_eq!(found, Bands { count, rows }, "{threshold} {permutations}");
    }
}

#[test]
fn estimates_are_near_the_true_similarity_for_every_scheme() {
    let (permutations, count) = (1024, 400_u64);
    for scheme in EVERY {
        let bands = Bands { count: 4, rows: 4 };
        let family = Family::MinHash { permutations, bands, scheme, seed: 1 };
        let sketcher = family.sketcher().unwrap();
        let set = |numbers: std::ops::Range<u64>| {
            let hashes: Vec<u64> =
                numbers.map(|n| scheme.hash(format!("shingle {n}").as_bytes())).collect();
            sketcher.of_hashes(&hashes).unwrap()
        };
        for shared in [0, 100, 200, 300, 400] {
            let (left, right) = (set(0..count), set(count - shared..2 * count - shared));
            let Similarity::Jaccard(estimate) = sketcher.similarity(&left, &right).unwrap() else {
                panic!("MinHash estimates Jaccard");
            };
            let truth = shared as f64 / (2 * count - shared) as f64;
            // Four standard errors of 1024 permutations.
            assert!((estimate - truth).abs() < 0.063, "{scheme:?}: {estimate} for {truth}");
        }
    }
}

#[test]
fn equal_bands_are_equal_keys_and_others_differ() {
    let family = minhash(Scheme::Fast, 16, 1);
    let sketcher = family.sketcher().unwrap();
    let left = Signature::MinHash((0..16).collect());
    let right = Signature::MinHash((0..16).map(|n| if n == 5 { 99 } else { n }).collect());
    let (left, right) = (keys(&sketcher, &left), keys(&sketcher, &right));
    let equal: Vec<bool> = left.iter().zip(&right).map(|(a, b)| a == b).collect();
    assert_eq!(equal, [true, false, true, true]);
    let same = keys(&sketcher, &Signature::MinHash(vec![3; 16]));
    assert!(same.windows(2).all(|pair| pair[0] != pair[1]), "tables are filled differently");
}

#[test]
fn simhashes_within_the_distance_share_a_bucket_always() {
    for (bits, distance) in
        [(SimHashBits::Bits64, 3), (SimHashBits::Bits64, 6), (SimHashBits::Bits128, 10)]
    {
        let sketcher = Family::SimHash { bits, distance }.sketcher().unwrap();
        let word = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978 & u128::MAX >> (128 - bits.count());
        let home = keys(&sketcher, &Signature::SimHash(word));
        for start in 0..bits.count() {
            // As many bits as allowed, spread over the whole signature.
            let step = bits.count() / distance;
            let flipped = (0..distance).map(|n| 1 << ((start + n * step) % bits.count()));
            let other = Signature::SimHash(word ^ flipped.fold(0, |all: u128, bit| all | bit));
            let shared = keys(&sketcher, &other).iter().zip(&home).any(|(a, b)| a == b);
            assert!(shared, "{bits:?}, {distance} bits from bit {start}");
            let found = sketcher.similarity(&Signature::SimHash(word), &other).unwrap();
            assert_eq!(found, Similarity::Hamming(distance));
        }
    }
}

#[test]
fn a_simhash_follows_the_weight() {
    let family = Family::SimHash { bits: SimHashBits::Bits128, distance: 3 };
    let sketcher = family.sketcher().unwrap();
    let sketch = |features: &[(u64, u32)]| sketcher.of_features(features).unwrap();
    assert_eq!(sketch(&[]), Signature::SimHash(0));
    let one = sketch(&[(0xfeed, 1)]);
    assert!(matches!(one, Signature::SimHash(word) if word as u64 == 0xfeed));
    assert_eq!(sketch(&[(0xfeed, 5), (!0xfeed, 2)]), one);
    let heavy: Vec<(u64, u32)> = (0..50_u64).map(|n| (Scheme::Fast.hash(&[n as u8]), 10)).collect();
    let changed: Vec<(u64, u32)> = heavy.iter().copied().chain([(77, 1)]).collect();
    let Similarity::Hamming(near) =
        sketcher.similarity(&sketch(&heavy), &sketch(&changed)).unwrap()
    else {
        panic!("SimHash has a Hamming distance");
    };
    assert!(near <= 8, "a feature of little weight has moved {near} bits");
}

/// Returns vectors at increasing distances from the first.
fn vectors(dimensions: usize) -> Vec<Vec<f32>> {
    let mut numbers = numbers::SplitMix(5);
    let base: Vec<f32> = (0..dimensions).map(|_| 10.0 * numbers.unit() as f32).collect();
    let direction: Vec<f32> = (0..dimensions).map(|_| numbers.normal() as f32).collect();
    let length = direction.iter().map(|x| x * x).sum::<f32>().sqrt();
    let moved = |distance: f32| {
        base.iter().zip(&direction).map(|(b, d)| b + d * distance / length).collect()
    };
    [0.0, 0.5, 1.0, 2.0, 4.0, 64.0].map(moved).to_vec()
}

#[test]
fn distances_are_estimated_and_near_vectors_share_buckets() {
    let (dimensions, tables, projections) = (32, 40, 4);
    let family = Family::PStable { dimensions, tables, projections, width: 4.0, seed: 3 };
    let sketcher = family.sketcher().unwrap();
    let sketches: Vec<Signature> =
        vectors(32).iter().map(|vector| sketcher.of_vector(vector).unwrap()).collect();
    let home = keys(&sketcher, &sketches[0]);
    let mut shared = Vec::new();
    for (sketch, truth) in sketches.iter().zip([0.0, 0.5, 1.0, 2.0, 4.0, 64.0]) {
        let Similarity::Distance(found) = sketcher.similarity(&sketches[0], sketch).unwrap() else {
            panic!("p-stable hashes estimate a distance");
        };
        assert!((found - truth).abs() <= truth * 0.3 + 1e-3, "{found} for {truth}");
        shared.push(keys(&sketcher, sketch).iter().zip(&home).filter(|(a, b)| a == b).count());
    }
    assert_eq!(shared[0], 40);
    assert!(shared.is_sorted_by(|a, b| a >= b) && shared[1] >= 20 && shared[5] == 0, "{shared:?}");
}

#[test]
fn further_probes_find_more_of_what_is_near() {
    let (dimensions, tables, projections) = (32, 10, 6);
    let family = Family::PStable { dimensions, tables, projections, width: 3.0, seed: 9 };
    let sketcher = family.sketcher().unwrap();
    let all = vectors(32);
    let (home, other) = (&all[0], &all[3]);
    let home = sketcher.of_vector(home).unwrap();
    let other = keys(&sketcher, &sketcher.of_vector(other).unwrap());
    let mut probed = keys(&sketcher, &home);
    let first = probed.chunks(10).flat_map(|row| row.iter().zip(&other)).filter(|(a, b)| a == b);
    let first = first.count();
    sketcher.probe_keys(&home, 30, &mut probed).unwrap();
    assert_eq!(probed.len(), 310);
    let found = probed.chunks(10).flat_map(|row| row.iter().zip(&other)).filter(|(a, b)| a == b);
    assert!(found.count() > first, "more than the {first} of the cells themselves");
    let distinct: std::collections::HashSet<u64> = probed.iter().copied().collect();
    assert_eq!(distinct.len(), 310, "no cell is probed twice");
}

#[test]
fn probes_go_to_the_nearest_cells_first() {
    // 0.9 is 0.1 from the next cell above; -0.25 is 0.25 from the next above and 0.75 from the next below.
    let found = pstable::probes(&[0.9, -0.25], 4);
    assert_eq!(found, [vec![1, -1], vec![0, 0], vec![1, 0], vec![0, -2]]);
    // One line has two cells next to it, and no more.
    assert_eq!(pstable::probes(&[0.5], 9).len(), 2);
}

#[test]
fn families_and_signatures_are_read_as_they_were_written() {
    for family in samples() {
        let bytes = family.encode();
        assert!(bytes.len() <= FAMILY_BYTES_MAX);
        assert_eq!(Family::decode(&bytes).unwrap(), family);
        for length in 0..bytes.len() {
            assert!(Family::decode(&bytes[..length]).is_err(), "{family:?} of {length} bytes");
        }
        let sketcher = family.sketcher().unwrap();
        let signature = match family {
            Family::MinHash { .. } => sketcher.of_hashes(&[1, 2, 3]),
            Family::SimHash { .. } => sketcher.of_features(&[(1, 2), (3, 4)]),
            Family::PStable { .. } => sketcher.of_vector(&[0.5; 16]),
        };
        let (signature, mut bytes) = (signature.unwrap(), Vec::new());
        signature.encode(&family, &mut bytes);
        assert_eq!(bytes.len(), family.signature_bytes());
        assert_eq!(family.decode_signature(&bytes).unwrap(), signature);
        assert!(family.decode_signature(&bytes[1..]).is_err());
        assert_eq!(keys(&sketcher, &signature).len(), family.tables() as usize);
    }
}

#[test]
fn the_bytes_of_a_family_are_what_the_format_says() {
    let bands = Bands { count: 9, rows: 13 };
    let family = Family::MinHash { permutations: 128, bands, scheme: Scheme::Fast, seed: 258 };
    let expected = [1, 1, 1, 0, 128, 0, 0, 0, 9, 0, 0, 0, 13, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!(family.encode(), expected);
    let family = Family::SimHash { bits: SimHashBits::Bits128, distance: 6 };
    assert_eq!(family.encode(), [1, 2, 128, 0, 6, 0, 0, 0]);
}

#[test]
fn parameters_that_cannot_work_are_refused_by_name() {
    let refusal = |family: Family| family.validate().unwrap_err().to_string();
    let bands = |count, rows| Bands { count, rows };
    let family =
        |permutations, bands, scheme, seed| Family::MinHash { permutations, bands, scheme, seed };
    let fast = Scheme::Fast;
    assert!(
        refusal(family(0, bands(1, 1), fast, 1)).starts_with("permutations: 0; give 1 to 1024")
    );
    assert!(refusal(family(2048, bands(1, 1), fast, 1)).starts_with("permutations: 2048"));
    assert!(refusal(family(64, bands(0, 4), fast, 1)).starts_with("bands: 0"));
    assert!(refusal(family(64, bands(17, 4), fast, 1)).starts_with("bands: 17 of 4 values each"));
    let seed = family(64, bands(16, 4), Scheme::DatasketchLegacy, 1 << 32);
    assert!(refusal(seed).starts_with("seed: 4294967296; numpy takes"));
    let simhash = Family::SimHash { bits: SimHashBits::Bits64, distance: 64 };
    assert!(refusal(simhash).starts_with("distance: 64; give fewer than the 64"));
    let pstable = |dimensions, width| {
        let (tables, projections) = (128, 32);
        Family::PStable { dimensions, tables, projections, width, seed: 1 }
    };
    assert!(refusal(pstable(8, f32::NAN)).starts_with("width: NaN"));
    assert!(refusal(pstable(8, -1.0)).starts_with("width: -1"));
    assert!(refusal(pstable(5000, 1.0)).starts_with("dimensions: 5000 on 4096 lines"));
}

#[test]
fn what_is_of_another_family_is_refused() {
    let [sets, bits, vectors] =
        [0, EVERY.len(), EVERY.len() + 2].map(|at| samples()[at].sketcher().unwrap());
    let (set, word) = (sets.of_hashes(&[1]).unwrap(), bits.of_features(&[(1, 1)]).unwrap());
    let refused = |found: crate::Result<Signature>| matches!(found, Err(Error::Config { .. }));
    assert!(refused(sets.of_vector(&[0.0; 16])) && refused(bits.of_hashes(&[1])));
    assert!(refused(vectors.of_features(&[])) && refused(vectors.of_vector(&[0.0; 15])));
    assert!(refused(vectors.of_vector(&[f32::INFINITY; 16])));
    assert!(sets.similarity(&set, &word).is_err() && bits.bucket_keys(&set, &mut vec![]).is_err());
    let longer = minhash(Scheme::Fast, 128, 7).sketcher().unwrap();
    assert!(longer.similarity(&set, &set).is_err(), "another number of permutations");
    assert!(sets.probe_keys(&set, 1, &mut vec![]).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_a_family_that_works_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(family) = Family::decode(&bytes) {
            prop_assert!(family.validate().is_ok());
            prop_assert_eq!(family.encode(), bytes);
        }
    }

    #[test]
    fn damaged_bytes_are_a_family_that_works_or_an_error(
        (which, at, byte) in (0..7_usize, 0..28_usize, any::<u8>())
    ) {
        let mut bytes = samples()[which].encode();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(family) = Family::decode(&bytes) {
            prop_assert!(family.validate().is_ok());
        }
    }
}
