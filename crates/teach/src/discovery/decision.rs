//! What to do about an intent: go ahead, ask which API or which entity is meant, or say that there is nothing.
//! Invariant: `ready` has seeds that can be sent to `plasm_context` as they are; a question has at least two options.

use serde::Serialize;

use super::{DiscoveryResult, Hit};

/// From this share of the intent on there is something here for it: or from this much in its best row, however long it is.
const ANSWERED: f32 = 0.265;
const MATCH_TOTAL: f32 = 1.3;
/// A row within this of the best is meant as well as the best.
const EQUAL: f32 = 0.75;
/// Rows of one API so close to each other are not told apart by the intent.
const ALIKE: f32 = 0.97;
/// A row within this of the best belongs to the task.
const TOGETHER: f32 = 0.7;
/// Seeds of a decision.
const SEEDS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Ready,
    ClarifyApi,
    ClarifyEntity,
    NoMatch,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    pub decision: Decision,
    /// What to seed when ready; otherwise what to choose from.
    pub options: Vec<Hit>,
    pub omitted: usize,
}

pub fn decide(found: &DiscoveryResult) -> Recommendation {
    let rows = &found.rows;
    let all = rows.len() + found.omitted;
    let typed = |decision, options: Vec<Hit>| Recommendation { decision, omitted: all - options.len(), options };
    let known = !found.named.is_empty() || found.answered_share >= ANSWERED || found.match_total >= MATCH_TOTAL;
    let Some(best) = rows.first().filter(|_| known) else {
        return typed(Decision::NoMatch, Vec::new());
    };
    let near = |share: f32| rows.iter().filter(move |hit| hit.score >= share * best.score);
    let rivals: Vec<Hit> = near(EQUAL).filter(|hit| hit.entity == best.entity).cloned().collect();
    if found.named.is_empty() && rivals.len() > 1 {
        return typed(Decision::ClarifyApi, rivals);
    }
    // Nothing but names of APIs is said, or three entities of one API are meant alike.
    let alike: Vec<Hit> = match found.match_total == 0.0 {
        true => rows.iter().filter(|hit| found.named.contains(&hit.api)).cloned().collect(),
        false => near(ALIKE).filter(|hit| hit.api == best.api).cloned().collect(),
    };
    if alike.len() > 2 || (found.match_total == 0.0 && alike.len() > 1) {
        return typed(Decision::ClarifyEntity, alike);
    }
    let together = |hit: &&Hit| hit.score >= TOGETHER * best.score || first_of_named(found, hit);
    typed(Decision::Ready, rows.iter().filter(together).take(SEEDS).cloned().collect())
}

/// The best row of an API that the intent names belongs to the task, whatever the others score.
fn first_of_named(found: &DiscoveryResult, hit: &Hit) -> bool {
    found.named.contains(&hit.api) && found.rows.iter().find(|row| row.api == hit.api) == Some(hit)
}
