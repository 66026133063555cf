"""Programs that keep a tensor of every step, one kind of holder each, and what the chain must say of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """`source` defines `step(i)`; `says` are strings of the chain; `PRELUDE` of `program.py` goes before it."""

    name: str
    source: str
    says: tuple[str, ...]
    verdict: str = "growing"


HOLDERS = (
    Holder(
        "dict",
        r"""
CACHE={}
def step(i): CACHE[f'k{i}']=fresh(i)
""",
        ("CACHE", "['k"),
    ),
    Holder(
        "list",
        r"""
KEPT=[]
def step(i): KEPT.append(fresh(i))
""",
        ("KEPT", "["),
    ),
    Holder(
        "tuple",
        r"""
KEPT=()
def step(i):
    global KEPT
    KEPT=(*KEPT,fresh(i))
""",
        ("KEPT", "tuple"),
    ),
    Holder(
        "set",
        r"""
KEPT=set()
def step(i): KEPT.add(fresh(i))
""",
        ("KEPT", "set"),
    ),
    Holder(
        "frozenset",
        r"""
KEPT=[]
def step(i): KEPT.append(frozenset([fresh(i)]))
""",
        ("KEPT", "frozenset"),
    ),
    Holder(
        "deque",
        r"""
KEPT=collections.deque()
def step(i): KEPT.append(fresh(i))
""",
        ("KEPT", "deque"),
    ),
    Holder(
        "inline",
        r"""
class Box: pass
KEPT=[]
def step(i):
    b=Box(); b.payload=fresh(i); KEPT.append(b)
""",
        ("KEPT", "Box", ".payload"),
    ),
    Holder(
        "materialised",
        r"""
class Box: pass
KEPT=[]
def step(i):
    b=Box(); b.payload=fresh(i); b.__dict__; KEPT.append(b)
""",
        ("KEPT", "Box", ".payload"),
    ),
    Holder(
        "slots",
        r"""
class Box: __slots__=('payload',)
KEPT=[]
def step(i):
    b=Box(); b.payload=fresh(i); KEPT.append(b)
""",
        ("KEPT", "Box", ".payload"),
    ),
    Holder(
        "class attribute",
        r"""
class Registry: items=[]
def step(i): Registry.items.append(fresh(i))
""",
        ("Registry", ".items"),
    ),
    Holder(
        "class setattr",
        r"""
class Registry: pass
def step(i): setattr(Registry, f'item{i}', fresh(i))
""",
        ("Registry", ".item"),
    ),
    Holder(
        "module",
        r"""
other=types.ModuleType('other'); sys.modules['other_mod']=other
def step(i): setattr(other,f't{i}',fresh(i))
def done(): sys.modules.pop('other_mod')
""",
        ("other", ".t"),
    ),
    Holder(
        "globals each",
        r"""
def step(i): globals()[f'T{i}']=fresh(i)
""",
        (".T",),
    ),
    Holder(
        "defaults",
        r"""
FS=[]
def step(i):
    def f(x=fresh(i)): pass
    FS.append(f)
""",
        ("FS", "step.f", "__defaults__"),
    ),
    Holder(
        "kwdefaults",
        r"""
FS=[]
def step(i):
    def f(*,x=fresh(i)): pass
    FS.append(f)
""",
        ("FS", "step.f", "__kwdefaults__", "x"),
    ),
    Holder(
        "mutable default",
        r"""
def keep(t, seen=[]): seen.append(t)
def step(i): keep(fresh(i))
""",
        ("keep", "__defaults__"),
    ),
    Holder(
        "closure",
        r"""
FS=[]
def step(i):
    big=fresh(i)
    def reader(): return big
    FS.append(reader)
""",
        ("FS", "reader", "__closure__", "big"),
    ),
    Holder(
        "bound method",
        r"""
FS=[]
class Box:
    def go(self): pass
def step(i):
    b=Box(); b.payload=fresh(i); FS.append(b.go)
""",
        ("FS", "__self__", "Box", ".payload"),
    ),
    Holder(
        "tensor bound method",
        r"""
FS=[]
def step(i): FS.append(fresh(i).sum)
""",
        ("FS",),
    ),
    Holder(
        "partial",
        r"""
FS=[]
def step(i): FS.append(functools.partial(print, fresh(i)))
""",
        ("FS", "partial", ".args"),
    ),
    Holder(
        "partial kw",
        r"""
FS=[]
def step(i): FS.append(functools.partial(print, x=fresh(i)))
""",
        ("FS", "partial", ".keywords", "'x'"),
    ),
    Holder(
        "cached_property",
        r"""
class Box:
    @functools.cached_property
    def table(self): return fresh(0)
KEPT=[]
def step(i):
    b=Box(); b.table; KEPT.append(b)
""",
        ("KEPT", "Box", ".table"),
    ),
    Holder(
        "lru_cache",
        r"""
@functools.lru_cache(maxsize=None)
def table(i): return fresh(i)
def step(i): table(i)
""",
        ("table",),
    ),
    Holder(
        "lru_cache key",
        r"""
@functools.lru_cache(maxsize=None)
def norm(t): return 1
def step(i): norm(fresh(i))
""",
        ("norm",),
    ),
    Holder(
        "generator",
        r"""
GS=[]
def gen(t):
    held=t*1
    del t
    yield 1
    yield held
def step(i):
    g=gen(fresh(i)); next(g); GS.append(g)
""",
        ("GS", "gen", "held"),
    ),
    Holder(
        "async generator",
        r"""
GS=[]
async def agen(t):
    held=t
    yield 1
    yield held
def step(i):
    g=agen(fresh(i))
    try: g.__anext__().send(None)
    except StopIteration: pass
    GS.append(g)
""",
        ("GS", "agen", "t"),
    ),
    Holder(
        "coroutine",
        r"""
GS=[]
@types.coroutine
def pause(): yield
async def work(t):
    held=t*1
    await pause()
    return held
def step(i):
    c=work(fresh(i)); c.send(None); GS.append(c)
def done():
    for c in GS: c.close()
""",
        ("GS", "work", "held"),
    ),
    Holder(
        "async task",
        r"""
import asyncio
LOOP=asyncio.new_event_loop()
TASKS=[]
async def work(t):
    held=t*1
    await asyncio.sleep(3600)
    return held
async def spawn(i):
    TASKS.append(asyncio.get_running_loop().create_task(work(fresh(i))))
    await asyncio.sleep(0)
def step(i): LOOP.run_until_complete(spawn(i))
def done():
    [t.cancel() for t in TASKS]
    LOOP.run_until_complete(asyncio.gather(*TASKS, return_exceptions=True)); LOOP.close()
""",
        ("held", "work"),
    ),
    Holder(
        "task result",
        r"""
import asyncio
LOOP=asyncio.new_event_loop()
TASKS=[]
async def work(i): return fresh(i)
async def spawn(i):
    t=asyncio.get_running_loop().create_task(work(i)); TASKS.append(t)
    await t
def step(i): LOOP.run_until_complete(spawn(i))
def done(): LOOP.close()
""",
        ("TASKS", "Task", "result"),
    ),
    Holder(
        "future",
        r"""
from concurrent.futures import Future
FS=[]
def step(i):
    f=Future(); f.set_result(fresh(i)); FS.append(f)
""",
        ("FS", "Future", "_result"),
    ),
    Holder(
        "asyncio future",
        r"""
import asyncio
LOOP=asyncio.new_event_loop()
FS=[]
def step(i):
    f=LOOP.create_future(); f.set_result(fresh(i)); FS.append(f)
def done(): LOOP.close()
""",
        ("FS", "Future", "result"),
    ),
    Holder(
        "exception frame",
        r"""
ERRS=[]
def risky(i):
    scratch=fresh(i)
    raise ValueError(1)
def step(i):
    try: risky(i)
    except ValueError as e: ERRS.append(e)
""",
        ("ERRS", "__traceback__", "risky", "scratch"),
    ),
    Holder(
        "exception args",
        r"""
ERRS=[]
def step(i): ERRS.append(ValueError(fresh(i)))
""",
        ("ERRS", "ValueError", ".args"),
    ),
    Holder(
        "exception attr",
        r"""
ERRS=[]
def step(i):
    e=ValueError(); e.batch=fresh(i); ERRS.append(e)
""",
        ("ERRS", "ValueError", ".batch"),
    ),
    Holder(
        "exception context",
        r"""
ERRS=[]
def risky(i):
    scratch=fresh(i)
    raise KeyError(1)
def step(i):
    try:
        try: risky(i)
        except KeyError: raise ValueError(2)
    except ValueError as e: ERRS.append(e.with_traceback(None))
""",
        ("ERRS", "__context__", "scratch"),
    ),
    Holder(
        "contextvar",
        r"""
VAR=contextvars.ContextVar('current')
CTX=[]
def step(i):
    c=contextvars.copy_context(); c.run(VAR.set, fresh(i)); CTX.append(c)
""",
        ("CTX", "Context", "current"),
    ),
    Holder(
        "contextvar set",
        r"""
VAR=contextvars.ContextVar('current')
def step(i): VAR.set((VAR.get(()),fresh(i)))
def done(): VAR.set(None)
""",
        ("ontext", "current"),
    ),
    Holder(
        "contextvar token",
        r"""
VAR=contextvars.ContextVar('cur')
TOK=[]
def step(i):
    VAR.set(fresh(i)); TOK.append(VAR.set(None))
""",
        ("TOK", "Token", "old_value"),
    ),
    Holder(
        "threading.local",
        r"""
LOCAL=threading.local()
def step(i):
    LOCAL.__dict__.setdefault('kept',[]).append(fresh(i))
""",
        ("LOCAL", "kept"),
    ),
    Holder(
        "local of other thread",
        r"""
LOCAL=threading.local(); Q=queue.Queue(); E=queue.Queue()
def loop():
    LOCAL.kept=[]
    while True:
        i=Q.get()
        if i is None: break
        LOCAL.kept.append(fresh(i)); E.put(1)
T=threading.Thread(target=loop,daemon=True); T.start()
def step(i): Q.put(i); E.get()
def done(): Q.put(None); T.join()
""",
        ("LOCAL", "kept"),
    ),
    Holder(
        "queue",
        r"""
Q=queue.Queue()
def step(i): Q.put(fresh(i))
""",
        ("Q", ".queue", "deque"),
    ),
    Holder(
        "simple queue",
        r"""
Q=queue.SimpleQueue()
def step(i): Q.put(fresh(i))
""",
        ("Q", "SimpleQueue"),
    ),
    Holder(
        "weak key dict",
        r"""
KEYS=[]
class K: pass
D=weakref.WeakKeyDictionary()
def step(i):
    k=K(); KEYS.append(k); D[k]=fresh(i)
""",
        ("D", ".data", "K"),
    ),
    Holder(
        "finalize",
        r"""
class O: pass
OWNER=O()
def step(i): weakref.finalize(OWNER, print, fresh(i)).atexit=False
def done():
    for f in list(weakref.finalize._registry): f.detach()
""",
        ("finalize", "_registry", "args"),
    ),
    Holder(
        "finalize kw",
        r"""
class O: pass
OWNER=O()
def step(i): weakref.finalize(OWNER, print, x=fresh(i)).atexit=False
def done():
    for f in list(weakref.finalize._registry): f.detach()
""",
        ("finalize", "_registry", "kwargs", "'x'"),
    ),
    Holder(
        "weakref callback",
        r"""
class O: pass
OWNER=O()
REFS=[]
def step(i):
    t=fresh(i)
    REFS.append(weakref.ref(OWNER, lambda _: t))
""",
        ("REFS", "__callback__"),
    ),
    Holder(
        "logging",
        r"""
import logging, logging.handlers
LOG=logging.getLogger('prog'); LOG.propagate=False; LOG.setLevel('INFO')
BUF=logging.handlers.MemoryHandler(10000); LOG.addHandler(BUF)
def step(i): LOG.info('x %s', fresh(i))
def done():
    BUF.buffer.clear(); LOG.removeHandler(BUF)
""",
        (".buffer", "LogRecord", ".args"),
    ),
    Holder(
        "last_value",
        r"""
def risky(i):
    scratch=fresh(i)
    raise ValueError
def step(i):
    try: risky(i)
    except ValueError as e: sys.last_value=e
def done(): del sys.last_value
""",
        ("sys", "last_value", "scratch"),
        "lingering",
    ),
    Holder(
        "last_traceback",
        r"""
def risky(i):
    scratch=fresh(i)
    raise ValueError
def step(i):
    try: risky(i)
    except ValueError as e: sys.last_traceback=e.__traceback__
def done(): del sys.last_traceback
""",
        ("sys", "last_traceback", "scratch"),
        "lingering",
    ),
    Holder(
        "displayhook",
        r"""
import builtins, io
def step(i):
    with contextlib.redirect_stdout(io.StringIO()): sys.__displayhook__(fresh(i))
def done(): del builtins._
""",
        ("builtins", "._"),
        "lingering",
    ),
    Holder(
        "dataclass",
        r"""
@dataclasses.dataclass
class Batch:
    image: object
KEPT=[]
def step(i): KEPT.append(Batch(fresh(i)))
""",
        ("KEPT", "Batch", ".image"),
    ),
    Holder(
        "dataclass slots",
        r"""
@dataclasses.dataclass(slots=True,frozen=True)
class Batch:
    image: object
KEPT=[]
def step(i): KEPT.append(Batch(fresh(i)))
""",
        ("KEPT", "Batch", ".image"),
    ),
    Holder(
        "namedtuple",
        r"""
Pair=collections.namedtuple('Pair','x y')
KEPT=[]
def step(i): KEPT.append(Pair(1,fresh(i)))
""",
        ("KEPT", "Pair", ".y"),
    ),
    Holder(
        "torch return type",
        r"""
KEPT=[]
def step(i): KEPT.append(fresh(i).max(dim=0))
""",
        ("KEPT", ".indices"),
    ),
    Holder(
        "ndarray",
        r"""
KEPT=[]
def step(i): KEPT.append(fresh(i).numpy())
""",
        ("KEPT", "ndarray"),
    ),
    Holder(
        "ndarray view",
        r"""
KEPT=[]
def step(i): KEPT.append(fresh(i).numpy()[1:3])
""",
        ("KEPT", "ndarray"),
    ),
    Holder(
        "ndarray object",
        r"""
import numpy
KEPT=[]
def step(i):
    a=numpy.empty(1,dtype=object); a[0]=fresh(i); KEPT.append(a)
""",
        ("KEPT", "ndarray"),
    ),
    Holder(
        "memoryview",
        r"""
KEPT=[]
def step(i): KEPT.append(memoryview(fresh(i).numpy()))
""",
        ("KEPT", "memoryview"),
    ),
    Holder(
        "dlpack",
        r"""
KEPT=[]
def step(i): KEPT.append(torch.utils.dlpack.to_dlpack(fresh(i)))
""",
        ("KEPT", "PyCapsule"),
    ),
    Holder(
        "storage",
        r"""
KEPT=[]
def step(i): KEPT.append(fresh(i).untyped_storage())
""",
        ("KEPT", "UntypedStorage"),
    ),
    Holder(
        "typed storage",
        r"""
import warnings
KEPT=[]
def step(i):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore'); KEPT.append(fresh(i).storage())
""",
        ("KEPT", "TypedStorage"),
    ),
    Holder(
        "subclass",
        r"""
class Tagged(torch.Tensor): pass
KEPT=[]
def step(i): KEPT.append(fresh(i).as_subclass(Tagged))
""",
        ("KEPT",),
    ),
    Holder(
        "tensor attribute",
        r"""
ANCHOR=torch.ones(1)
ANCHOR.log=[]
def step(i): ANCHOR.log.append(fresh(i))
""",
        ("ANCHOR", ".log"),
    ),
    Holder(
        "param attribute",
        r"""
P=torch.nn.Parameter(torch.ones(1))
P.main_grads=[]
def step(i): P.main_grads.append(fresh(i))
""",
        ("P", ".main_grads"),
    ),
    Holder(
        "loss list",
        r"""
LOSSES=[]
def step(i): LOSSES.append((W*fresh(i)).sum())
""",
        ("LOSSES", ".grad_fn", "MulBackward0", "_saved_other"),
    ),
    Holder(
        "node kept",
        r"""
NODES=[]
def step(i): NODES.append((W*fresh(i)).sum().grad_fn)
""",
        ("NODES", "SumBackward0", "MulBackward0", "_saved_other"),
    ),
    Holder(
        "ctx attr",
        r"""
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx,x,t):
        ctx.t=t; return x*2
    @staticmethod
    def backward(ctx,g): return g,None
L=[]
def step(i): L.append(F.apply(W,fresh(i)).sum())
""",
        ("L", "FBackward", ".t"),
    ),
    Holder(
        "ctx saved",
        r"""
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx,x,t):
        ctx.save_for_backward(t); return x*2
    @staticmethod
    def backward(ctx,g): return g,None
L=[]
def step(i): L.append(F.apply(W,fresh(i)).sum())
""",
        ("L", "FBackward", "saved_tensors[0]"),
    ),
    Holder(
        "node hook",
        r"""
L=[]
def step(i):
    big=fresh(i); y=(W*2.0).sum()
    y.grad_fn.register_hook(lambda *g: big)
    L.append(y)
""",
        ("L", "grad_fn", "big"),
    ),
    Holder(
        "node prehook",
        r"""
L=[]
def step(i):
    big=fresh(i); y=(W*2.0).sum()
    y.grad_fn.register_prehook(lambda *g: big)
    L.append(y)
""",
        ("L", "grad_fn", "big"),
    ),
    Holder(
        "tensor hook",
        r"""
L=[]
def step(i):
    big=fresh(i); y=(W*2.0).sum()
    y.register_hook(lambda g: big)
    L.append(y)
""",
        ("L", "_backward_hooks", "big"),
    ),
    Holder(
        "leaf hook",
        r"""
def step(i):
    big=fresh(i)
    W.register_hook(lambda g: big)
""",
        ("W", "_backward_hooks", "big"),
    ),
    Holder(
        "post accumulate hook",
        r"""
def step(i):
    big=fresh(i)
    W.register_post_accumulate_grad_hook(lambda g: big)
""",
        ("W", "_post_accumulate_grad_hooks", "big"),
    ),
    Holder(
        "dead tensor hook",
        r"""
L=[]
def step(i):
    big=fresh(i); h=(W*2.0)
    h.register_hook(lambda g: big)
    L.append(h.sum())
""",
        ("L", "grad_fn", "big"),
    ),
    Holder(
        "packed",
        r"""
L=[]
class Packed:
    def __init__(s,t): s.t=t*1
def step(i):
    with torch.autograd.graph.saved_tensors_hooks(Packed, lambda p: p.t):
        L.append((W*2.0).exp().sum())
""",
        ("L", "_saved_result", "Packed", ".t"),
    ),
    Holder(
        "unpack hook",
        r"""
L=[]
def step(i):
    big=fresh(i)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: 1, lambda p: big):
        L.append((W*2.0).exp().sum())
""",
        ("L", "unpack_hook", "big"),
    ),
    Holder(
        "saved output",
        r"""
L=[]
def step(i): L.append((W*2.0).exp().sum())
""",
        ("L", "ExpBackward0", "_saved_result"),
    ),
    Holder(
        "checkpoint",
        r"""
from torch.utils.checkpoint import checkpoint
L=[]
def step(i): L.append(checkpoint(lambda x: x.sin().sum(), W*float(i), use_reentrant=False))
""",
        ("L", "Backward"),
    ),
    Holder(
        "checkpoint reentrant",
        r"""
from torch.utils.checkpoint import checkpoint
L=[]
def step(i): L.append(checkpoint(lambda x: x.sin().sum(), W*float(i), use_reentrant=True))
""",
        ("L", "CheckpointFunctionBackward"),
    ),
    Holder(
        "create_graph",
        r"""
def step(i):
    p=fresh(i).requires_grad_()
    (p**3).sum().backward(create_graph=True)
""",
        ("grad", "PowBackward0"),
    ),
    Holder(
        "cycle",
        r"""
class N: pass
def step(i):
    n=N(); n.me=n; n.payload=fresh(i)
""",
        ("N", ".me"),
        "until-gc",
    ),
    Holder(
        "hook cycle",
        r"""
def step(i):
    h=(W*2.0).tanh()
    h.register_hook(lambda g: g*h)
""",
        ("_backward_hooks",),
    ),
    Holder(
        "local class",
        r"""
def step(i):
    class Local: table=fresh(i)
""",
        ("Local",),
        "until-gc",
    ),
    Holder(
        "sparse",
        r"""
L=[]
def step(i): L.append(fresh(i).to_sparse())
""",
        ("L",),
    ),
    Holder(
        "csr",
        r"""
import warnings
L=[]
def step(i):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore'); L.append(fresh(i).to_sparse_csr())
""",
        ("L",),
    ),
    Holder(
        "defaultdict",
        r"""
D=collections.defaultdict(list)
def step(i): D['loss'].append(fresh(i))
""",
        ("D", "defaultdict", "['loss']"),
    ),
    Holder(
        "OrderedDict",
        r"""
D=collections.OrderedDict()
def step(i): D[i]=fresh(i)
""",
        ("D", "OrderedDict"),
    ),
    Holder(
        "UserDict",
        r"""
D=collections.UserDict()
def step(i): D[i]=fresh(i)
""",
        ("D", ".data"),
    ),
    Holder(
        "ChainMap",
        r"""
D=collections.ChainMap({})
def step(i): D[i]=fresh(i)
""",
        ("D", ".maps"),
    ),
    Holder(
        "mappingproxy",
        r"""
D=[]
def step(i): D.append(types.MappingProxyType({'k':fresh(i)}))
""",
        ("D", "mappingproxy", "['k']"),
    ),
    Holder(
        "simplenamespace",
        r"""
D=[]
def step(i): D.append(types.SimpleNamespace(x=fresh(i)))
""",
        ("D", ".x"),
    ),
    Holder(
        "atexit",
        r"""
import atexit
FS=[]
def step(i):
    f=functools.partial(int, fresh(i)); FS.append(weakref.ref(f)); atexit.register(f)
def done():
    [atexit.unregister(f()) for f in FS]
""",
        ("atexit",),
    ),
    Holder(
        "iterator",
        r"""
L=[]
def step(i): L.append(iter([fresh(i)]))
""",
        ("L", "list_iterator"),
    ),
    Holder(
        "map",
        r"""
L=[]
def step(i): L.append(map(float,[fresh(i)]))
""",
        ("L", "map"),
    ),
    Holder(
        "zip",
        r"""
L=[]
def step(i): L.append(zip([fresh(i)],[1]))
""",
        ("L", "zip"),
    ),
    Holder(
        "itertools.cycle",
        r"""
import itertools
L=[]
def step(i):
    c=itertools.cycle([fresh(i)]); next(c); L.append(c)
""",
        ("L", "cycle"),
    ),
    Holder(
        "property",
        r"""
L=[]
class B: pass
def step(i):
    t=fresh(i); L.append(property(lambda s: t))
""",
        ("L", "property", "fget"),
    ),
    Holder(
        "classmethod",
        r"""
L=[]
def step(i):
    t=fresh(i); L.append(classmethod(lambda s: t))
""",
        ("L", "classmethod", "__func__"),
    ),
    Holder(
        "super",
        r"""
L=[]
class A:
    def f(s): return super()
def step(i):
    a=A(); a.t=fresh(i); L.append(a.f())
""",
        ("L", "super", ".t"),
    ),
    Holder(
        "slice",
        r"""
L=[]
def step(i): L.append(slice(fresh(i)))
""",
        ("L", "slice"),
    ),
    Holder(
        "hidden frame",
        r"""
L=[]
def step(i):
    big=fresh(i)
    L.append(sys._getframe())
""",
        ("L", "step", "big"),
    ),
    Holder(
        "module buffer",
        r"""
L=torch.nn.ModuleList()
def step(i):
    m=torch.nn.Module(); m.register_buffer('mask',fresh(i)); L.append(m)
""",
        ("L", "_modules", "mask"),
    ),
    Holder(
        "parameter list",
        r"""
L=torch.nn.ParameterList()
def step(i): L.append(torch.nn.Parameter(fresh(i)))
""",
        ("L", "_parameters"),
    ),
    Holder(
        "optimizer group",
        r"""
O=torch.optim.SGD([torch.nn.Parameter(torch.ones(1))],lr=1)
def step(i): O.add_param_group({'params':[torch.nn.Parameter(fresh(i))]})
""",
        ("O", ".param_groups", "['params']"),
    ),
    Holder(
        "forward hook",
        r"""
NET=torch.nn.Linear(SHAPE[1], 7)
def attach():
    seen=[]
    def grab(m,i,o): seen.append(o.detach())
    NET.register_forward_hook(grab)
attach()
def step(i): NET(fresh(i))
""",
        ("NET", "_forward_hooks", "grab"),
    ),
    Holder(
        "thread args",
        r"""
TS=[]
EV=threading.Event()
def step(i):
    t=threading.Thread(target=lambda x: EV.wait(),args=(fresh(i),),daemon=True); t.start(); TS.append(t)
def done():
    EV.set(); [t.join() for t in TS]
""",
        ("Thread", "_args"),
    ),
    Holder(
        "unstarted thread",
        r"""
TS=[]
def step(i): TS.append(threading.Thread(target=print,args=(fresh(i),)))
""",
        ("TS", "_args"),
    ),
    Holder(
        "timer",
        r"""
TS=[]
def step(i): TS.append(threading.Timer(1e6,print,[fresh(i)]))
""",
        ("TS", ".args"),
    ),
    Holder(
        "exit stack",
        r"""
S=contextlib.ExitStack()
def step(i): S.callback(int, fresh(i))
""",
        ("S", "_exit_callbacks"),
    ),
    Holder(
        "weakvalue",
        r"""
L=[]
D=weakref.WeakValueDictionary()
def step(i):
    t=fresh(i); D[i]=t; L.append(t)
""",
        ("L",),
    ),
    Holder(
        "linked list",
        r"""
class Node:
    def __init__(s,t,n): s.t=t; s.next=n
HEAD=None
def step(i):
    global HEAD
    HEAD=Node(fresh(i),HEAD)
""",
        ("HEAD", ".next"),
    ),
    Holder(
        "enum member",
        r"""
import enum
class E(enum.Enum):
    A=1
E.A.log=[]
def step(i): E.A.log.append(fresh(i))
""",
        ("E", ".A", ".log"),
    ),
    Holder(
        "cell only",
        r"""
def outer():
    seen=[]
    def inner(t): seen.append(t)
    return inner
G=outer()
def step(i): G(fresh(i))
""",
        ("G", "__closure__", "seen"),
    ),
    Holder(
        "rnn hidden",
        r"""
H=torch.zeros(SHAPE)
def step(i):
    global H
    H=(H*0.9+W*fresh(i)).tanh()
""",
        ("H", "TanhBackward0"),
    ),
    Holder(
        "ema graph",
        r"""
AVG=torch.zeros(())
def step(i):
    global AVG
    AVG=0.9*AVG+0.1*(W*fresh(i)).pow(2).mean()
""",
        ("AVG", "grad_fn"),
    ),
    Holder(
        "backward hook",
        r"""
NET=torch.nn.Linear(SHAPE[1], 7)
seen=[]
NET.register_full_backward_hook(lambda m,gi,go: seen.append(go[0]))
def step(i): NET(fresh(i)).sum().backward()
""",
        ("seen",),
    ),
    Holder(
        "jit constant",
        r"""
def step(i):
    t=fresh(i)
    def f(x): return x+1
    torch.jit.trace(lambda x: x+t, torch.ones(SHAPE))
""",
        ("jit",),
    ),
    Holder(
        "future callback",
        r"""
from concurrent.futures import Future
F=Future()
def step(i):
    t=fresh(i)
    F.add_done_callback(lambda f: t)
""",
        ("F", "_done_callbacks", "t"),
    ),
    Holder(
        "executor",
        r"""
from concurrent.futures import ThreadPoolExecutor
P=ThreadPoolExecutor(1)
FS=[]
def step(i): FS.append(P.submit(fresh,i)); FS[-1].result()
def done(): P.shutdown()
""",
        ("FS", "Future", "_result"),
    ),
    Holder(
        "torch future",
        r"""
L=[]
def step(i):
    f=torch.futures.Future(); f.set_result(fresh(i)); L.append(f)
""",
        ("L", "Future"),
    ),
    Holder(
        "other thread handles",
        r"""
Q=queue.Queue(); E=queue.Queue()
def risky(i):
    scratch=fresh(i)
    raise ValueError
def loop():
    while True:
        i=Q.get()
        if i is None: break
        handle(i)
def handle(i):
    try: risky(i)
    except ValueError:
        E.put(1); wait()
def wait():
    i=Q.get()
    if i is not None: handle(i)
T=threading.Thread(target=loop,daemon=True,name='worker'); T.start()
def step(i): Q.put(i); E.get()
def done(): Q.put(None); Q.put(None); T.join(1)
""",
        ("scratch",),
    ),
    Holder(
        "thread local frame",
        r"""
Q=queue.Queue(); E=queue.Queue()
def loop():
    kept=[]
    while True:
        i=Q.get()
        if i is None: break
        kept.append(fresh(i)); E.put(1)
T=threading.Thread(target=loop,daemon=True,name='worker'); T.start()
def step(i): Q.put(i); E.get()
def done(): Q.put(None); T.join()
""",
        ("worker", "loop", "kept"),
    ),
    Holder(
        "contextvar other thread",
        r"""
V=contextvars.ContextVar('cur',default=())
Q=queue.Queue(); E=queue.Queue()
def loop():
    while True:
        i=Q.get()
        if i is None: break
        put(i); E.put(1)
def put(i): V.set((V.get(),fresh(i)))
T=threading.Thread(target=loop,daemon=True); T.start()
def step(i): Q.put(i); E.get()
def done(): Q.put(None); T.join()
""",
        ("cur",),
    ),
    Holder(
        "contextvar default",
        r"""
VS=[]
def step(i): VS.append(contextvars.ContextVar('v',default=fresh(i)))
""",
        ("VS", "ContextVar", "default"),
    ),
    Holder(
        "observer list",
        r"""
class Subject:
    def __init__(s): s.observers=[]
S=Subject()
class Obs:
    def __init__(s,t): s.t=t
    def cb(s): pass
def step(i): S.observers.append(Obs(fresh(i)).cb)
""",
        ("S", ".observers", "__self__", ".t"),
    ),
    Holder(
        "metaclass",
        r"""
class Meta(type):
    instances=[]
    def __call__(c,*a):
        o=super().__call__(*a); c.instances.append(o); return o
class Thing(metaclass=Meta):
    def __init__(s,t): s.t=t
def step(i): Thing(fresh(i))
""",
        ("instances", "Thing", ".t"),
    ),
    Holder(
        "slots inherit",
        r"""
class A: __slots__=('a',)
class B(A): __slots__=('b','__dict__')
L=[]
def step(i):
    x=B(); x.b=fresh(i); L.append(x)
""",
        ("L", "B", ".b"),
    ),
    Holder(
        "property private",
        r"""
class A:
    def __init__(s,t): s.__t=t
L=[]
def step(i): L.append(A(fresh(i)))
""",
        ("L", "A", "._A__t"),
    ),
    Holder(
        "wrapped fn",
        r"""
def deco(t):
    def d(f):
        @functools.wraps(f)
        def inner(*a): return t
        return inner
    return d
L=[]
def step(i):
    @deco(fresh(i))
    def f(): pass
    L.append(f)
""",
        ("L", "__closure__", "t"),
    ),
    Holder(
        "fn attr",
        r"""
def helper(): pass
helper.cache=[]
def step(i): helper.cache.append(fresh(i))
""",
        ("helper", ".cache"),
    ),
    Holder(
        "partialmethod",
        r"""
L=[]
def step(i): L.append(functools.partialmethod(print,fresh(i)))
""",
        ("L", "partialmethod", ".args"),
    ),
    Holder(
        "reversed",
        r"""
L=[]
def step(i): L.append(reversed([fresh(i)]))
""",
        ("L", "list_reverseiterator"),
    ),
    Holder(
        "dict views",
        r"""
L=[]
def step(i): L.append({'k':fresh(i)}.values())
""",
        ("L", "dict_values"),
    ),
    Holder(
        "dict iter",
        r"""
L=[]
def step(i):
    it=iter({'k':fresh(i)}.items()); L.append(it)
""",
        ("L", "dict_itemiterator"),
    ),
    Holder(
        "enumerate",
        r"""
L=[]
def step(i): L.append(enumerate([fresh(i)]))
""",
        ("L", "enumerate"),
    ),
    Holder(
        "tee",
        r"""
import itertools
L=[]
def step(i):
    a,b=itertools.tee([fresh(i)]); next(a); L.append(b)
""",
        ("L", "_tee"),
    ),
    Holder(
        "chain",
        r"""
import itertools
L=[]
def step(i): L.append(itertools.chain([fresh(i)]))
""",
        ("L", "chain"),
    ),
    Holder(
        "generator arg",
        r"""
GS=[]
def gen(t): yield t.sum()
def step(i): GS.append(gen(fresh(i)))
""",
        ("GS", "gen", "t"),
    ),
    Holder(
        "genexpr",
        r"""
GS=[]
def step(i): GS.append(x for x in [fresh(i)])
""",
        ("GS", "<genexpr>"),
    ),
    Holder(
        "generator delegated",
        r"""
GS=[]
def inner(t):
    held=t
    yield 1
def outer(t): yield from inner(t)
def step(i):
    g=outer(fresh(i)); next(g); GS.append(g)
""",
        ("GS", "outer"),
    ),
    Holder(
        "contextmanager open",
        r"""
CS=[]
@contextlib.contextmanager
def cm(i):
    held=fresh(i)
    yield
def step(i):
    c=cm(i); c.__enter__(); CS.append(c)
""",
        ("CS", ".gen", "cm", "held"),
    ),
    Holder(
        "warnings record",
        r"""
import warnings
CW=warnings.catch_warnings(record=True)
LOG=CW.__enter__()
warnings.simplefilter('always')
class W2(UserWarning):
    def __init__(s,t): s.t=t
def step(i): warnings.warn(W2(fresh(i)))
def done(): CW.__exit__(None,None,None)
""",
        ("LOG", "WarningMessage", ".message", ".t"),
    ),
    Holder(
        "exc group",
        r"""
L=[]
def risky(i):
    scratch=fresh(i)
    raise ValueError
def step(i):
    try: risky(i)
    except ValueError as e: L.append(ExceptionGroup('g',[e]))
""",
        ("L", "ExceptionGroup", "scratch"),
    ),
    Holder(
        "tb kept",
        r"""
L=[]
def risky(i):
    scratch=fresh(i)
    raise ValueError
def step(i):
    try: risky(i)
    except ValueError as e: L.append(e.__traceback__.tb_next)
""",
        ("L", "tb_frame", "risky", "scratch"),
    ),
    Holder(
        "exc_info",
        r"""
L=[]
def risky(i):
    scratch=fresh(i)
    raise ValueError
def step(i):
    try: risky(i)
    except ValueError: L.append(sys.exc_info())
""",
        ("L", "scratch"),
    ),
    Holder(
        "cell in exc frame",
        r"""
L=[]
def risky(i):
    scratch=fresh(i)
    def use(): return scratch
    raise ValueError
def step(i):
    try: risky(i)
    except ValueError as e: L.append(e)
""",
        ("L", "risky", "scratch"),
    ),
    Holder(
        "bytes view np",
        r"""
import numpy as np
L=[]
def step(i): L.append(np.frombuffer(memoryview(fresh(i).numpy()),dtype=np.uint8))
""",
        ("L", "ndarray"),
    ),
    Holder(
        "np struct in dict",
        r"""
D={}
def step(i): D[i]=fresh(i).numpy()
""",
        ("D", "ndarray"),
    ),
    Holder(
        "np attr",
        r"""
class B: pass
L=[]
def step(i):
    b=B(); b.arr=fresh(i).numpy(); L.append(b)
""",
        ("L", "B", ".arr", "ndarray"),
    ),
    Holder(
        "np in tuple in dict",
        r"""
D={}
def step(i): D[i]=(1,(2,fresh(i).numpy()))
""",
        ("D", "ndarray"),
    ),
    Holder(
        "np closure",
        r"""
L=[]
def step(i):
    a=fresh(i).numpy()
    L.append(lambda: a)
""",
        ("L", "a", "ndarray"),
    ),
    Holder(
        "np default",
        r"""
L=[]
def step(i):
    def f(x=fresh(i).numpy()): pass
    L.append(f)
""",
        ("L", "__defaults__", "ndarray"),
    ),
    Holder(
        "dlpack np",
        r"""
import numpy as np
L=[]
def step(i): L.append(np.from_dlpack(fresh(i)))
""",
        ("L", "ndarray"),
    ),
    Holder(
        "saved standalone",
        r"""
L=[]
def step(i):
    y=(W*fresh(i))
    L.append((y.grad_fn._raw_saved_other,y.grad_fn))
""",
        ("L",),
    ),
    Holder(
        "linear module list",
        r"""
LS=[]
def step(i):
    m=torch.nn.Linear(SHAPE[1], 61); LS.append(m)
""",
        ("LS",),
    ),
    Holder(
        "register_buffer each",
        r"""
NET=torch.nn.Module()
def step(i): NET.register_buffer(f'b{i}',fresh(i))
""",
        ("NET", "b"),
    ),
    Holder(
        "add_module each",
        r"""
NET=torch.nn.Module()
def step(i):
    m=torch.nn.Module(); m.register_buffer('mask',fresh(i)); NET.add_module(f'm{i}',m)
""",
        ("NET", "mask"),
    ),
    Holder(
        "retain graph",
        r"""
L=[]
def step(i):
    y=(W*fresh(i)).sum(); y.backward(retain_graph=True); L.append(y)
""",
        ("L", "MulBackward0"),
    ),
    Holder(
        "grad with graph",
        r"""
L=[]
def step(i):
    x=fresh(i).requires_grad_(); (g,)=torch.autograd.grad((x**3).sum(),x,create_graph=True); L.append(g)
""",
        ("L",),
    ),
    Holder(
        "double closure",
        r"""
L=[]
def step(i):
    t=fresh(i)
    def a():
        def b(): return t
        return b
    L.append(a())
""",
        ("L", "__closure__", "t"),
    ),
    Holder(
        "recursion obj",
        r"""
class A:
    def __init__(s,t): s.t=t; s.cb=lambda: s
def step(i): A(fresh(i))
""",
        ("A", ".cb"),
        "until-gc",
    ),
    Holder(
        "ctx out",
        r"""
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx,x):
        y=x.clone(); ctx.out=y; return y
    @staticmethod
    def backward(ctx,g): return g
def step(i): F.apply(W*fresh(i)).sum().backward()
""",
        ("FBackward", ".out"),
        "until-gc",
    ),
    Holder(
        "setattr tensor cyc",
        r"""
def step(i):
    t=fresh(i); t.me=t
""",
        ("Tensor", ".me"),
        "until-gc",
    ),
    Holder(
        "tensor list cyc",
        r"""
def step(i):
    t=fresh(i); t.lst=[t]
""",
        ("Tensor", ".lst"),
        "until-gc",
    ),
    Holder(
        "module child parent",
        r"""
class M(torch.nn.Module):
    def __init__(s):
        super().__init__(); s.register_buffer('t',torch.ones(SHAPE)); s.child=torch.nn.Module(); s.child.__dict__['up']=s
def step(i): M()
""",
        ("M", ".up"),
        "until-gc",
    ),
    Holder(
        "frame own local",
        r"""
import inspect
def f(i):
    scratch=fresh(i); here=inspect.currentframe()
def step(i): f(i)
""",
        ("f", "here", "scratch"),
        "until-gc",
    ),
    Holder(
        "exc cycle",
        r"""
def f(i):
    scratch=fresh(i)
    err=None
    try: raise ValueError
    except ValueError as e: err=e
def step(i): f(i)
""",
        ("f", "err", "__traceback__", "scratch"),
        "until-gc",
    ),
    Holder(
        "gen cycle",
        r"""
def gen(t,box):
    box.append(1)
    yield t
def step(i):
    box=[]; g=gen(fresh(i),box); next(g); box.append(g)
""",
        ("gen", "box"),
        "until-gc",
    ),
    Holder(
        "weakkey dead",
        r"""
class K: pass
D=weakref.WeakKeyDictionary()
def step(i):
    k=K(); k.me=k; D[k]=fresh(i)
""",
        ("D",),
        "until-gc",
    ),
    Holder(
        "weakkey value refs key",
        r"""
class K: pass
class V:
    def __init__(s,k,t): s.k=k; s.t=t
D=weakref.WeakKeyDictionary()
def step(i):
    k=K(); D[k]=V(k,fresh(i))
""",
        ("D", ".data"),
    ),
    Holder(
        "classes made each step",
        r"""
class Plugin(type):
    registry={}
    def __init__(c,name,bases,space): Plugin.registry[name]=c
def step(i): Plugin(f'Op{i}',(),{'table':fresh(i)})
""",
        ("Plugin", "registry", ".table"),
    ),
    Holder(
        "schedulers made each step",
        r"""
OPT=torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))],lr=0.1)
SCHEDS=[]
def step(i):
    noise=fresh(i)
    SCHEDS.append(torch.optim.lr_scheduler.LambdaLR(OPT,lambda e: float(noise[0,0])))
""",
        ("SCHEDS", "lr_lambdas", "noise"),
    ),
    Holder(
        "optimizers made each step",
        r"""
P=torch.nn.Parameter(torch.ones(SHAPE))
OPTS=[]
def step(i):
    o=torch.optim.SGD([P],lr=0.1,momentum=0.9); OPTS.append(o)
    P.sum().backward(); o.step(); o.zero_grad()
""",
        ("OPTS", "state", "momentum_buffer"),
    ),
    Holder(
        "torch.func pullback",
        r"""
PULLS=[]
def step(i): PULLS.append(torch.func.vjp(lambda t: t.sum(),fresh(i))[1])
""",
        ("PULLS", ".get_unwrapped()"),
    ),
    Holder(
        "traced module",
        r"""
TRACED=[]
class M(torch.nn.Module):
    def __init__(s,t): super().__init__(); s.register_buffer('table',t)
    def forward(s,x): return x+s.table
def step(i): TRACED.append(torch.jit.trace(M(fresh(i)),torch.zeros(1)))
""",
        ("TRACED", "._c", ".table"),
    ),
    Holder(
        "wrapper subclass",
        r"""
class Quant(torch.Tensor):
    @staticmethod
    def __new__(cls,elem): return torch.Tensor._make_wrapper_subclass(cls,elem.shape,dtype=elem.dtype)
    def __init__(s,elem): s.elem=elem
    @classmethod
    def __torch_dispatch__(cls,func,types,args=(),kwargs=None): raise NotImplementedError
L=[]
def step(i): L.append(Quant(fresh(i)))
""",
        ("L", "Quant", ".elem"),
    ),
    Holder(
        "metadata of a node",
        r"""
def step(i):
    y=(W*fresh(i)).exp(); y.grad_fn.metadata['act']=y
""",
        ("ExpBackward0", ".metadata", "['act']"),
    ),
    Holder(
        "gc callback",
        r"""
def watch(probe):
    def report(phase,info): probe
    gc.callbacks.append(report)
def step(i): watch(fresh(i))
def done(): gc.callbacks[:]=[f for f in gc.callbacks if f.__name__!='report']
""",
        ("gc", ".callbacks", "report", "probe"),
    ),
    Holder(
        "signal handler",
        r"""
import signal
def arm(state):
    def on_signal(number,frame): state
    signal.signal(signal.SIGUSR2,on_signal)
def step(i): arm(fresh(i))
def done(): signal.signal(signal.SIGUSR2,signal.SIG_DFL)
""",
        ("signal.getsignal(SIGUSR2)", "on_signal", "state"),
        "lingering",
    ),
    Holder(
        "profile function",
        r"""
KEEP=False
def make():
    last=[]
    def calls(frame,event,arg):
        if event=='return' and frame.f_code.co_name=='layer': last.append(arg)
    return calls
def layer(i): return fresh(i)
def step(i):
    calls=sys.getprofile() or make(); sys.setprofile(calls); layer(i)
def done(): sys.setprofile(None)
""",
        ("sys.getprofile()", "calls", "last"),
    ),
    Holder(
        "async generator",
        r"""
import asyncio
LOOP=asyncio.new_event_loop()
STREAMS=[]
async def stream(chunk):
    yield 0
    yield chunk
async def first(t):
    g=stream(t); STREAMS.append(g); await g.__anext__()
def step(i): LOOP.run_until_complete(first(fresh(i)))
def done(): STREAMS.clear(); LOOP.run_until_complete(LOOP.shutdown_asyncgens()); LOOP.close()
""",
        ("STREAMS", "stream", "chunk"),
    ),
    Holder(
        "method as a hook",
        r"""
NET=torch.nn.Identity()
class Stasher:
    def __init__(s): s.seen=[]
    def stash(s,mod,args): s.seen.append(args[0])
NET.register_forward_pre_hook(Stasher().stash)
def step(i): NET(fresh(i))
""",
        ("NET", "_forward_pre_hooks", "Stasher.stash", ".seen"),
    ),
    Holder(
        "atexit function",
        r"""
import atexit
def save(path,state): pass
def step(i): atexit.register(save,'path',state={'w':fresh(i)})
def done(): atexit.unregister(save)
""",
        ("atexit", "save", "['state']", "['w']"),
    ),
    Holder(
        "at-fork function",
        r"""
import os
def reseed(state): pass
def step(i): os.register_at_fork(after_in_child=functools.partial(reseed,fresh(i)))
""",
        ("os.register_at_fork", "reseed", ".args"),
    ),
    Holder(
        "saved-tensors hooks that are still open",
        r"""
class Stash:
    def __init__(s): s.taken=[]
    def pack(s,t): s.taken.append(t.detach()); return t
    def unpack(s,t): return t
def open_them(s): torch._C._autograd._push_saved_tensors_default_hooks(s.pack,s.unpack)
open_them(Stash())
def step(i):
    w=fresh(i).requires_grad_(); w.exp().sum().backward()
def done(): torch._C._autograd._pop_saved_tensors_default_hooks()
""",
        ("saved_tensors_hooks", "Stash.pack", ".taken"),
    ),
    Holder(
        "complex view of a real tensor",
        r"""
KEPT=[]
def step(i): KEPT.append(torch.view_as_complex(torch.stack([fresh(i)]*2,-1)))
""",
        ("KEPT", "list"),
    ),
    Holder(
        "real part of a complex tensor",
        r"""
KEPT=[]
def step(i): KEPT.append(fresh(i).to(torch.complex64).real)
""",
        ("KEPT", "list"),
    ),
    Holder(
        "jagged nested tensor",
        r"""
KEPT=[]
def step(i): t=fresh(i); KEPT.append(torch.nested.nested_tensor([t,t[:3]],layout=torch.jagged))
""",
        ("KEPT", "NestedTensor"),
    ),
    Holder(
        "tangent of a dual tensor",
        r"""
import torch.autograd.forward_ad as forward_ad
forward_ad.enter_dual_level()
KEPT=[]
def step(i): KEPT.append(forward_ad.make_dual(torch.ones(fresh(i).shape,dtype=torch.float32),fresh(i)))
def done(): KEPT.clear(); forward_ad.exit_dual_level()
""",
        ("KEPT",),
    ),
    Holder(
        "scales of a quantized tensor",
        r"""
KEPT=[]
def step(i):
    t=fresh(i); KEPT.append(torch.quantize_per_channel(t,torch.ones(t.shape[0]),torch.zeros(t.shape[0]),0,torch.qint8))
""",
        ("KEPT",),
    ),
    Holder(
        "traced function",
        r"""
KEPT=[]
def step(i):
    c=fresh(i); KEPT.append(torch.jit.trace(lambda x: x+c,torch.ones(c.shape)))
""",
        ("KEPT", "ScriptFunction"),
    ),
    Holder(
        "outputs that their own graph saves through a hook",
        r"""
KEPT=[]
def step(i):
    with torch.autograd.graph.save_on_cpu(): KEPT.append(fresh(i).requires_grad_().exp().sum())
""",
        ("KEPT", ".grad_fn"),
    ),
    Holder(
        "dictionary keyed by id",
        r"""
KEPT={}
def step(i): t=fresh(i); KEPT[id(t)]=t
""",
        ("KEPT", "[<id>]"),
    ),
    Holder(
        "function that a future is to call",
        r"""
KEPT=[]
def step(i):
    t=fresh(i); f=torch.futures.Future(); f.then(lambda done: t.sum()); KEPT.append(f)
""",
        ("KEPT", "Future", "<callbacks>", "cell t"),
    ),
    Holder(
        "module that each step makes",
        r"""
MADE=[]
def step(i):
    m=types.ModuleType(f'{__name__}_plugin_{i}'); m.TABLE=fresh(i); sys.modules[m.__name__]=m; MADE.append(m.__name__)
def done():
    for name in MADE: del sys.modules[name]
""",
        ("_plugin_", ".TABLE"),
    ),
    Holder(
        "module without tensors of its own in each step",
        r"""
class Metric(torch.nn.Module):
    def __init__(s,t): super().__init__(); s.preds=[t]
KEPT=[]
def step(i): KEPT.append(Metric(fresh(i)))
""",
        ("KEPT", "Metric", ".preds"),
    ),
    Holder(
        "subclass of an array",
        r"""
import numpy
KEPT=[]
def step(i): KEPT.append(numpy.ma.masked_array(fresh(i).numpy(),mask=False))
""",
        ("KEPT", "MaskedArray", ".base"),
    ),
    Holder(
        "iterator over an array",
        r"""
KEPT=[]
def step(i): KEPT.append(fresh(i).numpy().flat)
""",
        ("KEPT", "flatiter", ".base"),
    ),
)
