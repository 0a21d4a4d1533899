/** The rooms and their paths. Each room is loaded when it is first opened. */
import { lazy, Suspense } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { nameInPath } from './shell/places.ts'
import { RoomBoundary } from './shell/RoomBoundary.tsx'
import { Shell } from './shell/Shell.tsx'
import { Empty } from './kit/Empty.tsx'
import { Skeleton } from './kit/Skeleton.tsx'

const ChatRoom = lazy(() => import('./rooms/chat/ChatRoom.tsx'))
const RunsRoom = lazy(() => import('./rooms/runs/RunsRoom.tsx'))
const RunRoom = lazy(() => import('./rooms/run/RunRoom.tsx'))
const CompareRoom = lazy(() => import('./rooms/compare/CompareRoom.tsx'))
const AgentsRoom = lazy(() => import('./rooms/agents/AgentsRoom.tsx'))
const ThreadsRoom = lazy(() => import('./rooms/threads/ThreadsRoom.tsx'))
const OverviewRoom = lazy(() => import('./rooms/overview/OverviewRoom.tsx'))

export function App() {
  const [path] = useLocation()
  return (
    <Shell>
      <RoomBoundary place={path}>
        <Suspense fallback={<Skeleton rows={6} />}>
          <Switch>
            <Route path="/">{() => <ChatRoom agent={undefined} />}</Route>
            <Route path="/chat">{() => <ChatRoom agent={undefined} />}</Route>
            <Route path="/chat/:agent">{() => <ChatRoom agent={nameInPath()} />}</Route>
            <Route path="/runs" component={RunsRoom} />
            <Route path="/runs/:id">{() => <RunRoom key={nameInPath()} id={nameInPath()} />}</Route>
            <Route path="/compare" component={CompareRoom} />
            <Route path="/agents">{() => <AgentsRoom id={undefined} />}</Route>
            <Route path="/agents/:id">{() => <AgentsRoom id={nameInPath()} />}</Route>
            <Route path="/threads">{() => <ThreadsRoom id={undefined} />}</Route>
            <Route path="/threads/:id">{() => <ThreadsRoom id={nameInPath()} />}</Route>
            <Route path="/overview" component={OverviewRoom} />
            <Route>
              <Empty title="There is nothing at this address.">
                The rail on the left leads to everything that there is.
              </Empty>
            </Route>
          </Switch>
        </Suspense>
      </RoomBoundary>
    </Shell>
  )
}
