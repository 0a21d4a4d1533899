/** The times that stand above a timeline. */
import type { Scale, View } from './scale.ts'

const nice = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000]

/**
 * `x` from 0 to 1 in what is shown; `ms` since the start, or since `origin`: of a fork, when it was forked. None in or right behind a gap: times jump
 * there.
 */
export function axisMarks(
  scale: Scale,
  view: View,
  px: number,
  origin: number = scale.from,
): { x: number; ms: number }[] {
  const size = view.to - view.from
  const [from, to] = [scale.toTime(view.from), scale.toTime(view.to)]
  const idle = scale.gaps.reduce((sum, gap) => sum + Math.max(0, Math.min(to, gap.to) - Math.max(from, gap.from)), 0)
  const least = ((to - from - idle) * 90) / Math.max(90, px)
  const every = nice.find((each) => each >= least) ?? Math.ceil(least / 600_000) * 600_000
  const marks: { x: number; ms: number }[] = []
  let last = -Infinity
  for (
    let ms = Math.max(0, Math.ceil((from - origin) / every) * every);
    origin + ms <= to && marks.length < 50;
    ms += every
  ) {
    const time = origin + ms
    const gap = scale.gaps.find((each) => time > each.from && time < each.to)
    if (gap !== undefined) {
      // On to the first one behind it.
      ms = Math.max(ms, Math.floor((gap.to - origin) / every) * every)
      continue
    }
    const x = (scale.toX(time) - view.from) / size
    if ((x - last) * px < 60 || x * px > px - 52) continue
    last = x
    marks.push({ x, ms })
  }
  return marks
}
