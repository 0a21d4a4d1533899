/**
 * Who is next among those that wait for a place: whoever's tenant has the fewest places, then whoever's tenant was served longest ago; the same
 * within a tenant, by owner. So a tenant that asks a hundred times as often as another waits for its own.
 */

/** Whose turn it is. */
export interface Party {
  tenant: string
  owner: string
}

interface Waiting<T> extends Party {
  value: T
}

/** How many places somebody has, and when the last was given. */
interface Share {
  places: number
  servedAt: number
}

export class FairLine<T> {
  private readonly waiting = new Set<Waiting<T>>()
  private readonly shares = new Map<string, Share>()
  private served = 0

  get size(): number {
    return this.waiting.size
  }

  waitingOf(tenant: string): number {
    let count = 0
    for (const each of this.waiting) if (each.tenant === tenant) count++
    return count
  }

  /** Returns a function that leaves the line. */
  join(party: Party, value: T): () => void {
    const each = { ...party, value }
    this.waiting.add(each)
    return () => void this.waiting.delete(each)
  }

  /** Takes the next one out of the line. */
  next(): T | undefined {
    let first: Waiting<T> | undefined
    for (const each of this.waiting) if (first === undefined || this.isBefore(each, first)) first = each
    if (first === undefined) return undefined
    this.waiting.delete(first)
    return first.value
  }

  /** A party has got a place. Returns a function that gives it back. */
  serve({ tenant, owner }: Party): () => void {
    const servedAt = ++this.served
    const names = [tenantName(tenant), ownerName(tenant, owner)]
    for (const name of names) this.shares.set(name, { places: (this.shares.get(name)?.places ?? 0) + 1, servedAt })
    return () => {
      for (const name of names) {
        const share = this.shares.get(name)!
        // Who has nothing was not served lately: the others have.
        if (share.places > 1) share.places--
        else this.shares.delete(name)
      }
    }
  }

  private isBefore(a: Party, b: Party): boolean {
    return (
      (this.compare(tenantName(a.tenant), tenantName(b.tenant)) ||
        this.compare(ownerName(a.tenant, a.owner), ownerName(b.tenant, b.owner))) < 0
    )
  }

  private compare(a: string, b: string): number {
    if (a === b) return 0
    const [one, other] = [this.shares.get(a), this.shares.get(b)]
    return (one?.places ?? 0) - (other?.places ?? 0) || (one?.servedAt ?? 0) - (other?.servedAt ?? 0)
  }
}

const tenantName = (tenant: string) => JSON.stringify([tenant])
const ownerName = (tenant: string, owner: string) => JSON.stringify([tenant, owner])
