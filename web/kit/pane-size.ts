/** Sizes of a pane that can be changed. The main pane keeps a fifth of the space, and at least 160 px. */
export function clampSize(size: number, min: number, space: number): number {
  const most = Math.max(min, space - Math.max(160, space / 5))
  return Math.round(Math.min(Math.max(size, min), most))
}

const steps = {
  left: { ArrowRight: 16, ArrowLeft: -16 },
  right: { ArrowLeft: 16, ArrowRight: -16 },
  bottom: { ArrowUp: 16, ArrowDown: -16 },
}

/** The size after a key on the edge; `undefined` for other keys. */
export function nextSize(
  key: string,
  at: 'left' | 'right' | 'bottom',
  size: number,
  min: number,
  space: number,
): number | undefined {
  if (key === 'Home') return min
  if (key === 'End') return clampSize(space, min, space)
  const step = new Map(Object.entries(steps[at])).get(key)
  return step === undefined ? undefined : clampSize(size + step, min, space)
}
