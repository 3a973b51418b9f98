//! Decides which documents of a batch are new.

use std::collections::{HashMap, HashSet};

use super::Index;
use super::batch::{Batch, Decided, Plan, target};
use super::record::{Decision, Neighbor};
use super::refused;
use super::update::PAIRS_MAX;
use super::verify::Verified;
use crate::Result;
use crate::measure::nearness;

impl Index {
    /// Decides on the documents with new texts, in order, by the near stored ones and by earlier ones of the batch.
    /// They are in the buckets afterwards.
    pub(super) fn decide(&self, batch: &mut Batch) -> Result<()> {
        let first = self.state.next;
        let (mut places, mut ids, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (place, plan) in batch.plans.iter().enumerate() {
            if let (Plan::New(Some(sketch)), Some(number)) = (plan, batch.decided[place].number) {
                places.push(place);
                ids.push(number);
                keys.extend_from_slice(&sketch.keys);
            }
        }
        let mut candidates =
            self.alike.candidates_then_insert_many(&ids, &keys).map_err(refused)?;
        let sketches = places.iter().filter_map(|place| match &batch.plans[*place] {
            Plan::New(sketch) => sketch.as_ref(),
            _ => None,
        });
        self.probe(&sketches.collect::<Vec<_>>(), &mut candidates)?;
        let stored: Vec<Vec<u64>> = candidates
            .iter()
            .map(|all| all.iter().copied().filter(|number| *number < first).collect())
            .collect();
        let rows = places.iter().zip(&stored).filter_map(|(place, stored)| {
            let Plan::New(Some(sketch)) = &batch.plans[*place] else { return None };
            Some((sketch, &stored[..]))
        });
        let verified = self.verified(&rows.collect::<Vec<_>>())?;
        let by_number: HashMap<u64, usize> =
            ids.iter().copied().zip(places.iter().copied()).collect();
        for (((place, number), near), candidates) in
            places.into_iter().zip(&ids).zip(verified).zip(candidates)
        {
            let fresh = candidates.iter().filter(|it| (first..*number).contains(it));
            let fresh: Vec<usize> = fresh.filter_map(|it| by_number.get(it).copied()).collect();
            self.decide_one(batch, place, (near, fresh));
        }
        for (place, plan) in batch.plans.iter().enumerate() {
            batch.decided[place].decision = match plan {
                Plan::New(None) => Some(Decision::Kept),
                Plan::Equal(decision) => Some(*decision),
                Plan::EqualTo(earlier) => {
                    let Decided { decision, number, .. } = &batch.decided[*earlier];
                    match (decision, number) {
                        (Some(near @ Decision::Near(_)), _) => Some(*near),
                        (_, number) => number.map(Decision::Exact),
                    }
                }
                Plan::New(Some(_)) | Plan::Stored(_) | Plan::Again(_) => continue,
            };
        }
        Ok(())
    }

    /// Decides on one document by the near stored ones and the candidates among earlier ones of the batch.
    fn decide_one(&self, batch: &mut Batch, place: usize, found: (Vec<Verified>, Vec<usize>)) {
        let (stored, fresh) = found;
        let nearness_min = self.nearness_min();
        let mut near: Vec<(Neighbor, bool)> = Vec::new();
        for Verified { number, nearness, is_kept, name } in stored {
            near.push((Neighbor { number, nearness }, is_kept));
            if is_kept {
                batch.names.insert(number, name);
            }
        }
        for other in fresh {
            let (Plan::New(Some(left)), Plan::New(Some(right))) =
                (&batch.plans[place], &batch.plans[other])
            else {
                continue;
            };
            let nearness = nearness(&self.sketcher, &left.signature, &right.signature);
            let Decided { decision, number: Some(number), .. } = batch.decided[other] else {
                continue;
            };
            if nearness >= nearness_min {
                let is_kept = decision == Some(Decision::Kept);
                near.push((Neighbor { number, nearness }, is_kept));
            }
        }
        near.sort_unstable_by_key(|(it, _)| (std::cmp::Reverse(it.nearness), it.number));
        let best = near.iter().find(|(_, is_kept)| *is_kept);
        let decision = best.map_or(Decision::Kept, |(neighbor, _)| Decision::Near(*neighbor));
        // However many are nearer, the document as whose duplicate it is removed is a pair.
        let mut pairs: Vec<Neighbor> = near.iter().take(PAIRS_MAX).map(|(it, _)| *it).collect();
        if let Decision::Near(neighbor) = decision
            && !pairs.contains(&neighbor)
        {
            pairs.pop();
            pairs.push(neighbor);
        }
        let decided = &mut batch.decided[place];
        decided.decision = Some(decision);
        decided.pairs = pairs;
    }

    /// Finds the names of the stored documents as whose duplicates others are removed.
    pub(super) fn find_names(&self, batch: &mut Batch) -> Result<()> {
        let decisions = batch.decided.iter().filter_map(|it| it.decision);
        let stored = batch.plans.iter().filter_map(|plan| match plan {
            Plan::Stored(record) => Some(record.decision),
            _ => None,
        });
        let targets: HashSet<u64> = decisions.chain(stored).filter_map(target).collect();
        let mut numbers: Vec<u64> = targets.iter().copied().collect();
        numbers.retain(|number| *number < self.state.next && !batch.names.contains_key(number));
        let records = self.records_by_number(numbers)?;
        batch.names.extend(records.into_iter().map(|(number, record)| (number, record.name)));
        let fresh = batch.decided.iter().zip(&batch.documents);
        let fresh = fresh.filter_map(|(it, document)| Some((it.number?, document)));
        let fresh = fresh.filter(|(number, _)| targets.contains(number));
        batch.names.extend(fresh.map(|(number, document)| (number, document.id.clone())));
        Ok(())
    }
}
