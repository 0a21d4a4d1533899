/** How an answer shows that it is broken, besides the errors that its provider sends. */

/** An event that breaks off in the middle: what it said is lost. */
export class BrokenFrame extends Error {}

export class HtmlAnswer extends Error {
  readonly html: string
  constructor(html: string) {
    super('HTML')
    this.html = html
  }
}

/** The provider says that there is no answer. */
export class FailedEnd extends Error {
  readonly raw: string | undefined
  constructor(raw: string | undefined, why: string | undefined) {
    super(why ?? '')
    this.raw = raw
  }
}
