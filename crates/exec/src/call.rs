//! One call: bind, send, decode.
//! Invariant: at most as many calls are under way as the session and the origin may have; the place covers the whole call, and
//! a call that a bound forbids does not leave.

use base::Response;
use catalog::{
    Answer, Args, Ask, Asked, Capability, Catalog, DecodeError, Decoded, Kind, Transport, Window, bind, decode,
};
use ports::upstream::Call;

use crate::budget::{Allowance, Counted};
use crate::ctx::Ctx;
use crate::error::{ApiProblem, StepError};

/// What a step reads with.
#[derive(Clone, Copy)]
pub struct Reads<'a> {
    pub ctx: &'a Ctx<'a>,
    pub allowance: &'a Allowance<'a>,
    pub counted: Counted,
    /// The fields that are needed, for an API that can be asked for just these; `None` is all.
    pub fields: Option<&'a [String]>,
}

/// What is called.
pub type Target<'a> = (&'a Catalog, &'a Capability);

/// Which part of what the API has.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub page: Option<Asked<'a>>,
    pub rows: Window,
}

impl Part<'_> {
    /// The one answer there is, with all of its rows.
    pub const WHOLE: Part<'static> = Part { page: None, rows: Window::ALL };
}

impl<'a> Reads<'a> {
    pub fn of(ctx: &'a Ctx<'a>, allowance: &'a Allowance<'a>) -> Self {
        Self { ctx, allowance, counted: Counted::ByPlan, fields: allowance.fields.as_deref() }
    }

    /// The same, for rows of another entity than the step's: all of their fields.
    pub fn whole(self) -> Self {
        Self { fields: None, ..self }
    }
}

pub async fn read(
    reads: &Reads<'_>,
    (catalog, capability): Target<'_>,
    args: &Args,
    part: Part<'_>,
) -> Result<Decoded, StepError> {
    let ctx = reads.ctx;
    let ask = Ask { page: part.page.map(|asked| asked.page), fields: reads.fields, ..Ask::new(args) };
    let request = bind(catalog, capability, &ask)?;
    let label = request.label();
    let response: Response = {
        let _place = reads.allowance.place(ctx, catalog).await;
        // Counted when it leaves: a run that was told to stop while this one waited starts no call.
        reads.allowance.call(ctx, catalog, reads.counted)?;
        ctx.upstream.send(Call { tenant: ctx.tenant.clone(), request, repeatable: true, pace: catalog.pace }).await?
    };
    reads.allowance.run.came(response.body.len());
    if !response.is_success() {
        return Err(StepError::from_status(label, &response));
    }
    let Some(decoded) = decode_off(ctx, (catalog, capability), response, args, part).await else {
        return Err(StepError::Interrupted(label));
    };
    decoded.map_err(|source| match source {
        // How GraphQL says that there is none.
        DecodeError::NoRows(_) if capability.kind == Kind::Get && is_graphql(capability) => {
            let message = format!("there is no such {}", capability.entity);
            StepError::Refused { label, problem: ApiProblem::NotFound, message }
        }
        source => StepError::from_decode(label, source),
    })
}

fn is_graphql(capability: &Capability) -> bool {
    matches!(capability.transport, Transport::Graphql(_))
}

/// Above this, decoding takes long enough to be felt by other sessions on the same thread.
const SMALL_BYTES: usize = 128 * 1024;

/// Decodes a large answer on a thread for such work; `None` when that thread did not come back.
pub async fn decode_off(
    ctx: &Ctx<'_>,
    (catalog, capability): Target<'_>,
    response: Response,
    args: &Args,
    Part { page: asked, rows: window }: Part<'_>,
) -> Option<Result<Decoded, DecodeError>> {
    let nesting = ctx.limits.nesting;
    let pinned = ctx.catalogs.get(&catalog.id).filter(|_| response.body.len() > SMALL_BYTES).cloned();
    let Some(catalog_of_its_own) = pinned else {
        return Some(decode(catalog, capability, &Answer { response: &response, args, asked, nesting, window }));
    };
    let (capability, args, page) = (capability.clone(), args.clone(), asked.map(|a| (a.page.clone(), a.seen)));
    let work = move || {
        let asked = page.as_ref().map(|(page, seen)| Asked { page, seen: *seen });
        let answer = Answer { response: &response, args: &args, asked, nesting, window };
        decode(&catalog_of_its_own, &capability, &answer)
    };
    tokio::task::spawn_blocking(work).await.ok()
}
