/** Maps the time of a run to places from 0 to 1 and back. Idle gaps are drawn short, whatever their length. */
import type { Span } from './spans.ts'

export interface Scale extends Span {
  gaps: readonly Span[]
  toX(time: number): number
  toTime(x: number): number
}

/** Of the time that is drawn: the width of one gap that is over, unless they would take more than a third together. */
const gapShare = 0.03

export function createScale({ from, to }: Span, idle: readonly Span[]): Scale {
  const gaps = idle.filter((gap) => gap.from < to && gap.to > from)
  const hidden = gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0)
  const drawn = Math.max(1, to - from - hidden)
  // One that lasts until now is what the reader looks for.
  const weights = gaps.map((gap) => (gap.to >= to ? 6 : 1))
  const parts = weights.reduce((sum, weight) => sum + weight, 0)
  const share = parts === 0 ? 0 : Math.min(gapShare, 0.33 / parts)
  const unit = (drawn * share) / (1 - share * parts)
  const widths = weights.map((weight) => weight * unit)
  const total = drawn + unit * parts

  return {
    from,
    to,
    gaps,
    toX(time) {
      let x = time - from
      for (const [i, gap] of gaps.entries()) {
        if (time <= gap.from) break
        const inside = Math.min(time, gap.to) - gap.from
        x += (inside / (gap.to - gap.from)) * widths[i]! - inside
      }
      return x / total
    },
    toTime(x) {
      let left = x * total
      let time = from
      for (const [i, gap] of gaps.entries()) {
        const width = widths[i]!
        const before = gap.from - time
        if (left <= before) return time + left
        left -= before
        if (left <= width) return gap.from + (left / width) * (gap.to - gap.from)
        left -= width
        time = gap.to
      }
      return time + left
    },
  }
}

/** The part of a scale that is shown: from 0 to 1 when it is not zoomed. */
export interface View {
  from: number
  to: number
}

export const wholeView: View = { from: 0, to: 1 }
const narrowest = 1e-5

/** `factor` under 1 shows less. The place `x` of the view stays where it is. */
export function zoomView({ from, to }: View, factor: number, x = 0.5): View {
  const width = Math.min(1, Math.max(narrowest, (to - from) * factor))
  const at = from + x * (to - from)
  return within(at - x * width, width)
}

/** `share` of what is shown; positive shows what comes later. */
export function panView({ from, to }: View, share: number): View {
  return within(from + share * (to - from), to - from)
}

function within(from: number, width: number): View {
  const start = Math.min(1 - width, Math.max(0, from))
  return { from: start, to: start + width }
}

/** `<ms>-<ms>` since the start of the run, as in a URL. Undefined: all is shown. */
export function viewToText(view: View, scale: Scale): string | undefined {
  if (view.to - view.from > 0.999) return undefined
  const ms = (x: number) => Math.max(0, Math.round(scale.toTime(x) - scale.from))
  return `${ms(view.from)}-${Math.max(ms(view.to), ms(view.from) + 1)}`
}

export function textToView(text: string | undefined, scale: Scale): View {
  const [, from, to] = /^(\d{1,12})-(\d{1,12})$/u.exec(text ?? '') ?? []
  if (from === undefined || Number(to) <= Number(from)) return wholeView
  const [a, b] = [scale.toX(scale.from + Number(from)), scale.toX(scale.from + Number(to))]
  return within(a, Math.min(1, Math.max(narrowest, b - a)))
}
