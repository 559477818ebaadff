//! One read call to an API: the arguments are bound to a request, the request is sent, and the answer is decoded.
//! Invariant: the limits of the session and the origin bound concurrent calls, and a permit is kept for the whole call. A call
//! beyond a bound of the plan is never sent.

use base::Response;
use catalog::{
    Args, BindInput, Capability, Catalog, DecodeError, DecodeInput, Decoded, Kind, RequestedPage, RowWindow, Transport,
    bind, decode,
};
use ports::upstream::Call;

use crate::budget::{Allowance, Counted};
use crate::ctx::Ctx;
use crate::error::{ApiProblem, StepError};

/// The context of a step's read calls, with the budget that counts them.
#[derive(Clone, Copy)]
pub struct ReadContext<'a> {
    pub ctx: &'a Ctx<'a>,
    /// The remaining budget of the step.
    pub allowance: &'a Allowance<'a>,
    /// Whether the plan's bounds count these reads.
    pub counted: Counted,
    /// The fields to request, for APIs that can return single fields. `None` requests all fields.
    pub fields: Option<&'a [String]>,
}

/// The capability to call, with its catalog.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub catalog: &'a Catalog,
    pub capability: &'a Capability,
}

/// The part of an API's list that one call requests.
#[derive(Debug, Clone, Copy)]
pub struct ListPart<'a> {
    /// The page to request, with the number of rows before the page. `None` for an API without pages.
    pub page: Option<RequestedPage<'a>>,
    /// The rows of the answer to decode. All other rows are only counted.
    pub rows: RowWindow,
}

impl ListPart<'_> {
    /// The whole answer of an API without pages.
    pub const WHOLE: ListPart<'static> = ListPart { page: None, rows: RowWindow::ALL };
}

impl<'a> ReadContext<'a> {
    pub fn of(ctx: &'a Ctx<'a>, allowance: &'a Allowance<'a>) -> Self {
        Self { ctx, allowance, counted: Counted::ByPlan, fields: allowance.fields.as_deref() }
    }

    /// Returns this context with all fields requested. It is used for rows of another entity, because `fields` names fields of
    /// the step's entity.
    pub fn all_fields(self) -> Self {
        Self { fields: None, ..self }
    }
}

/// Calls a read capability and decodes the rows. A status that is not a success becomes an error with the API's own message.
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
        // The call is counted after the wait for the permit, because the run may be cancelled during the wait and must then
        // send no call.
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

/// The size of an answer in bytes above which it is decoded on a blocking thread. Decoding a larger answer would noticeably
/// delay other sessions on the same thread.
const INLINE_DECODE_BYTES: usize = 128 * 1024;

/// Decodes an answer; a large answer is decoded on a blocking thread. Returns `None` if the blocking thread ended without a
/// result.
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
