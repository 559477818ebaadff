//! One call: bind, send, decode.
//! Invariant: at most as many calls are under way as the session may have; the permit covers the whole call.

use base::Response;
use catalog::{Args, Capability, Catalog, Decoded, PageRequest, bind, decode};
use ports::upstream::Call;

use crate::ctx::Ctx;
use crate::error::StepError;

pub async fn read(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    capability: &Capability,
    args: &Args,
    page: Option<PageRequest>,
) -> Result<Decoded, StepError> {
    let request = bind(catalog, capability, args, page)?;
    let label = request.label();
    let response: Response = {
        // The semaphore is never closed; without a permit the call goes ahead, bounded by the origin's own limit.
        let _permit = ctx.calls.acquire().await.ok();
        ctx.upstream.send(Call { tenant: ctx.tenant.clone(), request, repeatable: true, pace: None }).await?
    };
    if !response.is_success() {
        return Err(StepError::from_status(label, &response));
    }
    decode(catalog, capability, &response, ctx.limits.nesting)
        .map_err(|source| StepError::Decode { label, source: Box::new(source) })
}
