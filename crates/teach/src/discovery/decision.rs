//! The decision about the hits for an intent: teach the seeds, ask for the API or the entity, or report that nothing matches.
//! Invariant: `plasm_context` accepts the options of `ready` as seeds. A question has at least two options.

use serde::Serialize;

use super::{DiscoveryResult, Hit};

/// The minimum share of the intent's words that the first rows match. A smaller share is accepted if the match total reaches
/// [`MIN_MATCH_TOTAL`], because a long intent has many words that no entity matches.
const MIN_ANSWERED_SHARE: f32 = 0.265;
/// The minimum match total of the best row. It is an alternative to the minimum share.
const MIN_MATCH_TOTAL: f32 = 1.3;
/// The minimum score, as a share of the best score, at which an entity of the same name in another API is also a possible
/// meaning.
const MIN_RIVAL_SHARE: f32 = 0.75;
/// The minimum score, as a share of the best score, at which the intent does not distinguish an entity from the best entity of
/// the same API.
const MIN_INDISTINCT_SHARE: f32 = 0.97;
/// The minimum score, as a share of the best score, at which an entity is taught together with the best entity.
const MIN_TOGETHER_SHARE: f32 = 0.7;
/// The maximum number of seeds in a decision.
const MAX_SEEDS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The intent is clear. The options are the seeds for the task.
    Ready,
    /// The caller must choose between entities of the same name in several APIs.
    ClarifyApi,
    /// The caller must choose between several entities of one API.
    ClarifyEntity,
    /// No entity matches the intent.
    NoMatch,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    pub decision: Decision,
    /// The seeds of `Ready`, or the choices of a question.
    pub options: Vec<Hit>,
    /// The number of hits that are not among the options.
    pub omitted: usize,
}

pub fn decide(result: &DiscoveryResult) -> Recommendation {
    let rows = &result.rows;
    let all = rows.len() + result.omitted;
    let recommend = |decision, options: Vec<Hit>| Recommendation { decision, omitted: all - options.len(), options };
    let names_an_api = !result.named_apis.is_empty();
    let fits = names_an_api || result.answered_share >= MIN_ANSWERED_SHARE || result.match_total >= MIN_MATCH_TOTAL;
    let Some(best) = rows.first().filter(|_| fits) else {
        return recommend(Decision::NoMatch, Vec::new());
    };
    let rows_from = |share: f32| rows.iter().filter(move |hit| hit.score >= share * best.score);
    let rivals: Vec<Hit> = rows_from(MIN_RIVAL_SHARE).filter(|hit| hit.entity == best.entity).cloned().collect();
    if !names_an_api && rivals.len() > 1 {
        return recommend(Decision::ClarifyApi, rivals);
    }
    // An intent with only names of APIs can mean any of their entities, so two entities are already a question. Otherwise two
    // indistinct entities are taught together, and only three or more are a question.
    let only_names_apis = result.match_total == 0.0;
    let indistinct: Vec<Hit> = if only_names_apis {
        rows.iter().filter(|hit| result.named_apis.contains(&hit.api)).cloned().collect()
    } else {
        rows_from(MIN_INDISTINCT_SHARE).filter(|hit| hit.api == best.api).cloned().collect()
    };
    if indistinct.len() > 2 || (only_names_apis && indistinct.len() > 1) {
        return recommend(Decision::ClarifyEntity, indistinct);
    }
    let belongs = |hit: &&Hit| hit.score >= MIN_TOGETHER_SHARE * best.score || is_best_of_named_api(result, hit);
    recommend(Decision::Ready, rows.iter().filter(belongs).take(MAX_SEEDS).cloned().collect())
}

/// Returns whether the hit is the best hit of an API that the intent names. Such a hit is a seed independently of its score.
fn is_best_of_named_api(result: &DiscoveryResult, hit: &Hit) -> bool {
    result.named_apis.contains(&hit.api) && result.rows.iter().find(|row| row.api == hit.api) == Some(hit)
}
