/** `GET /api/runs/:id/replay`: a recorded run through any wire, at its recorded pace. */
import { hasEnded } from '../../part/log.ts'
import { recordedRun } from '../../part/recording.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { deliveryResponse } from '../../delivery/delivery-response.ts'
import { readHistory } from '../../delivery/open-delivery.ts'
import { fromPromises, type BodySource } from '../../delivery/streamed-body.ts'
import { checkPlaces, checkReplay, replay } from '../../record/replay/replay.ts'
import { builtinWires } from '../../wire/builtin-wires.ts'
import type { Wire } from '../../wire/wire.ts'
import type { RequestContext } from '../handler-context.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import { untilExpired } from '../http/until-expired.ts'
import { existingRun } from './existing-run.ts'

const parameters = { speed: 20, from: 20, to: 20, format: 100 }

export async function replayRun(context: RequestContext, id: string, url: URL): Promise<Response> {
  const { runtime, wires } = context
  const row = await existingRun(context, id)
  const { speed, from, to, format = 'parts' } = readQuery(url, parameters)
  const known: ReadonlyMap<string, Wire> = new Map([...builtinWires, ...wires])
  const wire = known.get(format)
  if (wire === undefined)
    throw bad('format', `one of ${[...known.keys()].join(', ')}${didYouMean(format, known.keys())}`)
  const seq = (text: string | undefined, name: string) =>
    text === undefined ? undefined : wholeNumber(text, name, 1, row.lastSeq)
  const leave = new AbortController()
  const options = {
    wire,
    speed: toSpeed(speed),
    from: seq(from, 'from') ?? 1,
    to: seq(to, 'to') ?? row.lastSeq,
    signal: leave.signal,
    ...(wire.showsHistory === true && { history: await readHistory(runtime, id) }),
    // A request for a part expects an early end.
    ...(to === undefined &&
      !hasEnded(row.status) &&
      wire.showsLog !== true && {
        unfinished: { code: 'replay-over', message: `Run ${id} has not ended: its recording stops here.` },
      }),
  }
  checkReplay(options, row.lastSeq)
  await checkPlaces(recordedRun(runtime.store.log, id), options)
  const pieces = replay(runtime.store, id, options)
  const source: BodySource = {
    next: fromPromises(async () => (await pieces.next()).value ?? undefined),
    cancel() {
      leave.abort()
      void pieces.return().catch(() => undefined)
    },
  }
  return deliveryResponse(wire, id, { source: untilExpired(source, context) })
}

function toSpeed(text = '1'): number {
  const speed = text === 'max' ? Infinity : Number(text)
  if (!/^(?:max|\d+(?:\.\d+)?)$/u.test(text) || speed < 0.1) throw bad('speed', 'a number from 0.1 on, or max')
  return speed
}
