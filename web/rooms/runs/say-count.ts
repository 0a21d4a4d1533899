export interface Counted {
  count: number
  /** There are more: the server counts up to a bound. */
  isMore: boolean
}

/** `316 runs`, `9 of 316`, `9 of over 1,000`, `over 1,000 fit`. `loaded`: so many that fit are in the list. */
export function sayCount(fitting: Counted | undefined, all: Counted | undefined, loaded = 0): string {
  const say = ({ count, isMore }: Counted) => {
    const words = (isMore ? Math.max(count, loaded) : count).toLocaleString('en-US')
    return isMore ? `over ${words}` : words
  }
  const shown = fitting ?? all
  if (shown === undefined) return ''
  if (fitting === undefined || all === undefined) return `${say(shown)} ${shown.count === 1 ? 'run' : 'runs'}`
  return fitting.isMore ? `${say(fitting)} fit` : `${say(fitting)} of ${say(all)}`
}
