/** A JSON answer with long lists, made and sent in slices: `JSON.stringify` of a run of 300,000 steps would stop all others for seconds. */

/** Items of a list that are made into JSON without a pause. */
const most = 250

const turn: (go: () => void) => void = typeof setImmediate === 'function' ? setImmediate : (go) => setTimeout(go)

/** `value`: an object. The lists among its own fields are sliced. */
export function slicedJson(value: object): Response {
  const lists = Object.values(value).filter((each): each is unknown[] => Array.isArray(each) && each.length > most)
  if (lists.length === 0) return Response.json(value)
  const slices = slicesOf(value)
  const bytes = new TextEncoder()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        await new Promise<void>((resolve) => turn(resolve))
        const { done, value: slice } = slices.next()
        if (done === true) controller.close()
        else controller.enqueue(bytes.encode(slice))
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers: { 'content-type': 'application/json' } })
}

function* slicesOf(value: object): Generator<string, void> {
  let open = '{'
  for (const [key, field] of Object.entries(value) as [string, unknown][]) {
    const list = Array.isArray(field) && field.length > most ? (field as unknown[]) : undefined
    const text = list === undefined ? (JSON.stringify(field) as string | undefined) : '['
    // As in `JSON.stringify`, a field without a value is left out.
    if (text === undefined) continue
    yield `${open}${JSON.stringify(key)}:${text}`
    open = ','
    if (list === undefined) continue
    for (let at = 0; at < list.length; at += most) {
      // Without the brackets.
      yield `${at === 0 ? '' : ','}${JSON.stringify(list.slice(at, at + most)).slice(1, -1)}`
    }
    yield ']'
  }
  yield open === '{' ? '{}' : '}'
}
