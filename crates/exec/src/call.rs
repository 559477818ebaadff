//! One read of an API: a call is bound to a request, sent, and its answer decoded.
//! Invariant: the session and the origin bound the calls that run at once, and a permit covers the whole call. A call that
//! a bound forbids does not leave.

use base::Response;
use catalog::{
    Args, BindInput, Capability, Catalog, DecodeError, DecodeInput, Decoded, Kind, RequestedPage, RowWindow, Transport,
    bind, decode,
};
use ports::upstream::Call;

use crate::budget::{Allowance, Counted};
use crate::ctx::Ctx;
use crate::error::{ApiProblem, StepError};

/// The context of a step's reads, with the budget that they use up.
#[derive(Clone, Copy)]
pub struct ReadContext<'a> {
    pub ctx: &'a Ctx<'a>,
    /// The remaining budget of the step.
    pub allowance: &'a Allowance<'a>,
    /// Whether these reads count against the plan.
    pub counted: Counted,
    /// The fields to ask for, if the API can be asked for single fields. `None` asks for all fields.
    pub fields: Option<&'a [String]>,
}

/// The capability to call and its catalog.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub catalog: &'a Catalog,
    pub capability: &'a Capability,
}

/// The part of an API's list that a call asks for.
#[derive(Debug, Clone, Copy)]
pub struct ListPart<'a> {
    /// The page to ask for, if the API has pages, with the number of rows before it.
    pub page: Option<RequestedPage<'a>>,
    /// The rows of the answer to build; the others are only counted.
    pub rows: RowWindow,
}

impl ListPart<'_> {
    /// The only answer of an API without pages, with all of its rows.
    pub const WHOLE: ListPart<'static> = ListPart { page: None, rows: RowWindow::ALL };
}

impl<'a> ReadContext<'a> {
    pub fn of(ctx: &'a Ctx<'a>, allowance: &'a Allowance<'a>) -> Self {
        Self { ctx, allowance, counted: Counted::ByPlan, fields: allowance.fields.as_deref() }
    }

    /// Returns the same reads for rows of another entity than the step's. All fields are asked for, since the field
    /// list belongs to the step's entity.
    pub fn all_fields(self) -> Self {
        Self { fields: None, ..self }
    }
}

/// Calls a read and decodes its rows. Any status but success is an error with the API's own message.
pub async fn read(
    reads: &ReadContext<'_>,
    target: Target<'_>,
    args: &Args,
    part: ListPart<'_>,
) -> Result<Decoded, StepError> {
    let ctx = reads.ctx;
    let Target { catalog, capability } = target;
    let input =
        BindInput { page: part.page.map(|position| position.page), fields: reads.fields, ..BindInput::new(args) };
    let request = bind(catalog, capability, &input)?;
    let label = request.label();
    let response: Response = {
        let _permit = reads.allowance.permit(ctx, catalog).await;
        // The call is counted when it leaves, not when it starts to wait, because a run that was cancelled meanwhile must
        // start no call.
        reads.allowance.count_call(ctx, catalog, reads.counted)?;
        ctx.upstream.send(Call { tenant: ctx.tenant.clone(), request, repeatable: true, pace: catalog.pace }).await?
    };
    reads.allowance.run.add_bytes(response.body.len());
    if !response.is_success() {
        return Err(StepError::from_status(label, &response));
    }
    let Some(decoded) = decode_off_thread(ctx, target, response, args, part).await else {
        return Err(StepError::Interrupted(label));
    };
    decoded.map_err(|source| match source {
        // GraphQL answers `null` for a missing row, where REST answers 404.
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

/// The size above which an answer is decoded on a blocking thread, because decoding it would noticeably delay other
/// sessions on the same thread.
const INLINE_DECODE_BYTES: usize = 128 * 1024;

/// Decodes an answer, a large one on a blocking thread. Returns `None` if that thread ended without a result.
pub async fn decode_off_thread(
    ctx: &Ctx<'_>,
    Target { catalog, capability }: Target<'_>,
    response: Response,
    args: &Args,
    ListPart { page, rows: window }: ListPart<'_>,
) -> Option<Result<Decoded, DecodeError>> {
    let max_depth = ctx.limits.nesting;
    let pinned = ctx.catalogs.get(&catalog.id).filter(|_| response.body.len() > INLINE_DECODE_BYTES).cloned();
    let Some(owned_catalog) = pinned else {
        return Some(decode(catalog, capability, &DecodeInput { response: &response, args, page, max_depth, window }));
    };
    let capability = capability.clone();
    let args = args.clone();
    let owned_page = page.map(|page| (page.page.clone(), page.rows_before));
    let decode_owned = move || {
        let page = owned_page.as_ref().map(|(page, rows_before)| RequestedPage { page, rows_before: *rows_before });
        let input = DecodeInput { response: &response, args: &args, page, max_depth, window };
        decode(&owned_catalog, &capability, &input)
    };
    tokio::task::spawn_blocking(decode_owned).await.ok()
}
