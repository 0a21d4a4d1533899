/**
 * Builds the arguments of a call from pieces (`$.recipe.steps[0]` = "Mix"), and the JSON text of what has come so far: its deltas
 * add up to what `JSON.stringify` makes of the whole.
 */
import type { PartialArg } from './chunk-schema.ts'
import { indexesInOrder, pathOf, setValue, valueAt, type Path } from './json-path.ts'

export interface JsonBuilder {
  /** Returns the JSON text that the pieces add. */
  add(pieces: readonly PartialArg[]): string
  /** The whole JSON text, and what of it has not been returned yet. */
  end(): { json: string; rest: string }
}

/** An object or array that is open in the text. */
interface Container {
  key: string | number
  isArray: boolean
  members: number
}

export function createJsonBuilder(): JsonBuilder {
  const args: Record<string, unknown> = {}
  let length = 0
  /** The first is the arguments themselves. */
  const open: Container[] = []
  let isStringOpen = false

  function add(pieces: readonly PartialArg[]): string {
    let delta = ''
    for (const piece of pieces) delta += addPiece(piece)
    length += delta.length
    return delta
  }

  function addPiece(piece: PartialArg): string {
    // An array ends with a piece without a value. If it is empty, that is its only one.
    const endsArray = piece.jsonPath.endsWith('[]')
    const path = pathOf(endsArray ? piece.jsonPath.slice(0, -2) : piece.jsonPath)
    if (path === undefined || !indexesInOrder(args, path)) return ''
    const { stringValue: text, willContinue } = piece
    const existing = valueAt(args, path)
    if (text !== null && text !== undefined && existing !== undefined) {
      setValue(args, path, (existing as string) + text)
      return JSON.stringify(text).slice(1, -1) + (willContinue === true ? '' : closeString())
    }
    const value = valueOf(piece)
    if (value !== undefined) {
      setValue(args, path, value)
      return closeString() + goTo(path.slice(0, -1), typeof path.at(-1) === 'number') + member(path, piece, value)
    }
    if (existing !== undefined) return typeof existing === 'string' && willContinue !== true ? closeString() : ''
    if (willContinue === true) return ''
    setValue(args, path, endsArray ? [] : {})
    return closeString() + goTo(path, endsArray)
  }

  function closeString(): string {
    const quote = isStringOpen ? '"' : ''
    isStringOpen = false
    return quote
  }

  /** Closes and opens containers until that at `path` is the innermost. It may stay open. */
  function goTo(path: Path, isArray: boolean): string {
    let text = ''
    if (open.length === 0) {
      open.push({ key: '', isArray: false, members: 0 })
      text = '{'
    }
    let common = 1
    while (common < open.length && common <= path.length && open[common]!.key === path[common - 1]) common++
    while (open.length > common) text += open.pop()!.isArray ? ']' : '}'
    for (let i = open.length - 1; i < path.length; i++) {
      const key = path[i]!
      const opensArray = i + 1 < path.length ? typeof path[i + 1] === 'number' : isArray
      text += comma() + nameOf(key) + (opensArray ? '[' : '{')
      open.push({ key, isArray: opensArray, members: 0 })
    }
    return text
  }

  function member(path: Path, { stringValue, willContinue }: PartialArg, value: unknown): string {
    const json = JSON.stringify(value)
    const goesOn = stringValue !== null && stringValue !== undefined && Boolean(willContinue)
    if (goesOn) isStringOpen = true
    return comma() + nameOf(path.at(-1)!) + (goesOn ? json.slice(0, -1) : json)
  }

  function comma(): string {
    return open.at(-1)!.members++ > 0 ? ',' : ''
  }

  return {
    add,
    end() {
      const json = JSON.stringify(args)
      return { json, rest: json.slice(length) }
    },
  }
}

function nameOf(key: string | number): string {
  return typeof key === 'string' ? `${JSON.stringify(key)}:` : ''
}

/** Undefined if there is none: null is a value. */
function valueOf(piece: PartialArg): unknown {
  const value = piece.stringValue ?? piece.numberValue ?? piece.boolValue
  if (value !== null && value !== undefined) return value
  return 'nullValue' in piece ? null : undefined
}
