//! The decision about an intent: teach these seeds, ask which API or which entity is meant, or say that nothing fits.
//! Invariant: the options of `ready` can be sent to `plasm_context` as seeds. A question has at least two options.

use serde::Serialize;

use super::{DiscoveryResult, Hit};

/// The share of the intent that the first rows must answer, so that something fits. [`MATCH_TOTAL`] is enough instead, because
/// a long intent has many words that no entity answers.
const ANSWERED: f32 = 0.265;
/// How strongly the best row must match, so that something fits.
const MATCH_TOTAL: f32 = 1.3;
/// The share of the best score from which on an entity of the same name in another API may be meant as well.
const RIVAL: f32 = 0.75;
/// The share of the best score from which on the intent does not tell two entities of one API apart.
const INDISTINCT: f32 = 0.97;
/// The share of the best score from which on an entity belongs to the task.
const TOGETHER: f32 = 0.7;
/// The largest number of seeds of a decision.
const SEEDS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The options are the seeds of the task.
    Ready,
    /// Entities of the same name in several APIs may be meant.
    ClarifyApi,
    /// Several entities of one API may be meant.
    ClarifyEntity,
    /// Nothing fits the intent.
    NoMatch,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    pub decision: Decision,
    /// The seeds of `Ready`, and the choices of a question.
    pub options: Vec<Hit>,
    /// The number of hits that are no option.
    pub omitted: usize,
}

pub fn decide(result: &DiscoveryResult) -> Recommendation {
    let rows = &result.rows;
    let all = rows.len() + result.omitted;
    let recommend = |decision, options: Vec<Hit>| Recommendation { decision, omitted: all - options.len(), options };
    let names_an_api = !result.named_apis.is_empty();
    let fits = names_an_api || result.answered_share >= ANSWERED || result.match_total >= MATCH_TOTAL;
    let Some(best) = rows.first().filter(|_| fits) else {
        return recommend(Decision::NoMatch, Vec::new());
    };
    let rows_from = |share: f32| rows.iter().filter(move |hit| hit.score >= share * best.score);
    let rivals: Vec<Hit> = rows_from(RIVAL).filter(|hit| hit.entity == best.entity).cloned().collect();
    if !names_an_api && rivals.len() > 1 {
        return recommend(Decision::ClarifyApi, rivals);
    }
    // An intent that says only names of APIs asks for any of their entities. Otherwise two entities that the intent does not
    // tell apart are taught together, and only three or more are a question.
    let only_names_apis = result.match_total == 0.0;
    let indistinct: Vec<Hit> = if only_names_apis {
        rows.iter().filter(|hit| result.named_apis.contains(&hit.api)).cloned().collect()
    } else {
        rows_from(INDISTINCT).filter(|hit| hit.api == best.api).cloned().collect()
    };
    if indistinct.len() > 2 || (only_names_apis && indistinct.len() > 1) {
        return recommend(Decision::ClarifyEntity, indistinct);
    }
    let belongs = |hit: &&Hit| hit.score >= TOGETHER * best.score || is_best_of_named_api(result, hit);
    recommend(Decision::Ready, rows.iter().filter(belongs).take(SEEDS).cloned().collect())
}

/// Returns whether the row is the best one of an API that the intent names. Such a row belongs to the task whatever its score is.
fn is_best_of_named_api(result: &DiscoveryResult, hit: &Hit) -> bool {
    result.named_apis.contains(&hit.api) && result.rows.iter().find(|row| row.api == hit.api) == Some(hit)
}
