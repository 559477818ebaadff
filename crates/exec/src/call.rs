//! One call: bind, send, decode.
//! Invariant: at most as many calls are under way as the session may have; the permit covers the whole call.

use base::Response;
use catalog::{Answer, Args, Ask, Asked, Capability, Catalog, DecodeError, Decoded, bind, decode};
use ports::upstream::Call;

use crate::ctx::Ctx;
use crate::error::StepError;

pub async fn read(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    capability: &Capability,
    args: &Args,
    asked: Option<Asked<'_>>,
) -> Result<Decoded, StepError> {
    let request = bind(catalog, capability, &Ask { page: asked.map(|a| a.page), ..Ask::new(args) })?;
    let label = request.label();
    let response: Response = {
        // The semaphore is never closed; without a permit the call goes ahead, bounded by the origin's own limit.
        let _permit = ctx.calls.acquire().await.ok();
        ctx.upstream.send(Call { tenant: ctx.tenant.clone(), request, repeatable: true, pace: catalog.pace }).await?
    };
    if !response.is_success() {
        return Err(StepError::from_status(label, &response));
    }
    let Some(decoded) = decode_off(ctx, (catalog, capability), response, args, asked).await else {
        return Err(StepError::Interrupted(label));
    };
    decoded.map_err(|source| StepError::Decode { label, source: Box::new(source) })
}

/// Above this, decoding takes long enough to be felt by other sessions on the same thread.
const SMALL_BYTES: usize = 128 * 1024;

/// Decodes a large answer on a thread for such work; `None` when that thread did not come back.
async fn decode_off(
    ctx: &Ctx<'_>,
    (catalog, capability): (&Catalog, &Capability),
    response: Response,
    args: &Args,
    asked: Option<Asked<'_>>,
) -> Option<Result<Decoded, DecodeError>> {
    let nesting = ctx.limits.nesting;
    let pinned = ctx.catalogs.get(&catalog.id).filter(|_| response.body.len() > SMALL_BYTES).cloned();
    let Some(catalog_of_its_own) = pinned else {
        return Some(decode(catalog, capability, &Answer { response: &response, args, asked, nesting }));
    };
    let (capability, args, page) = (capability.clone(), args.clone(), asked.map(|a| (a.page.clone(), a.seen)));
    let work = move || {
        let asked = page.as_ref().map(|(page, seen)| Asked { page, seen: *seen });
        decode(&catalog_of_its_own, &capability, &Answer { response: &response, args: &args, asked, nesting })
    };
    tokio::task::spawn_blocking(work).await.ok()
}
