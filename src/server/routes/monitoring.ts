/** What monitors ask: events of all runs. */
import type { Hono } from 'hono'
import type { HandlerContext } from '../handler.ts'
import { getAllEvents } from './all-events.ts'

export function mountMonitoring(app: Hono, context: HandlerContext): void {
  app.get('/api/events', (c) => getAllEvents(context, c.req.raw, new URL(c.req.url)))
}
