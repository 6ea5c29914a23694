/* OM(1) among N = 4 or 5 processes, of which one is a traitor, as parley explore runs the
   machines of agreement/om. Process 0 is the source; its order is 0 or 1, and 0 is taken
   for what does not come. There are two rounds. In each everybody has one frame for every
   other process, with nothing in it where OM(1) says nothing. Frames of correct processes
   arrive first, in any order; then the traitor tells each process 0, 1 or nothing, and
   that arrives in any order too; then the round ends.

     spin -a -DN=5 om1.pml
     gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000               with reduction
     gcc -O2 -DSAFETY -DNOREDUCE -o pan pan.c && ./pan -m100000    without           */

#ifndef N
#define N 4
#endif
#define NOTHING 2

byte order, traitor;
byte value[N];                       /* what a process has decided */
chan link[N * N] = [1] of { byte };  /* of the sender * N + the receiver */
chan ready[N] = [1] of { bit };      /* a process has what it can have by now */
chan go = [0] of { byte };           /* a round of a process ends, and the next begins */

#if N == 5
#define EACH(x) x(0) && x(1) && x(2) && x(3) && x(4)
#define LINKS chan a; chan b; chan c; chan d
#define FROM(p, q, r, s, i) link[p * N + i], link[q * N + i], link[r * N + i], link[s * N + i]
#else
#define EACH(x) x(0) && x(1) && x(2) && x(3)
#define LINKS chan a; chan b; chan c
#define FROM(p, q, r, i) link[p * N + i], link[q * N + i], link[r * N + i]
#endif
#define THERE(i) nempty(ready[i])
#define HEARD(i) (i == traitor || nempty(ready[i]))

/* A frame arrives. The clock waits for the last of the correct ones, and for the last. */
#define TAKE(c, place) \
	atomic { c?got[place] -> n++; \
		if :: n == correct || n == N - 1 -> ready[me]!1 :: else fi; \
		if :: n == N - 1 -> goto rest :: else -> goto hear fi }

proctype Process(byte me; LINKS) {
	byte got[N - 1], n, correct, ones, i, round;
	xr a; xr b; xr c;
#if N == 5
	xr d;
#endif
	goto rest;
hear:
	if
	:: TAKE(a, 0)
	:: TAKE(b, 1)
	:: TAKE(c, 2)
#if N == 5
	:: TAKE(d, 3)
#endif
	fi;
rest:
	atomic {
		go?eval(me) ->
		d_step {
			correct = (me == traitor -> N - 1 : N - 2);
			if
			:: round == 0 -> value[me] = (me == 0 -> order : NOTHING)
			:: round == 1 -> value[me] = (me > 0 && got[0] == 1 -> 1 : 0)
			:: else ->
				ones = value[me]; i = 1;
				do
				:: i < N - 1 -> if :: got[i] == 1 -> ones++ :: else fi; i++
				:: else -> break
				od;
				value[me] = (2 * ones > N - 1 -> 1 : 0)
			fi;
			i = 0;
			do
			:: i < N - 1 -> got[i] = 0; i++
			:: else -> break
			od;
			i = 0; ones = 0; n = 0; round++
		}
		if
		:: round < 3 -> goto hear
		:: else
		fi
	}
}

/* What the correct processes tell everybody in a round. */
inline tell(round) {
	k = 0;
	do
	:: k < N * N && (k / N == k % N || k / N == traitor) -> k++
	:: k < N * N && k / N != k % N && k / N != traitor ->
		if
		:: round == 0 && k / N == 0 || round == 1 && k / N > 0 && k % N > 0 -> link[k]!value[k / N]
		:: else -> link[k]!NOTHING
		fi;
		k++
	:: k == N * N -> k = 0; break
	od
}

/* What the traitor tells everybody in a round. */
inline lie(round) {
	k = 0;
	do
	:: k == traitor -> k++
	:: k < N && k != traitor ->
		if
		:: traitor == 0 && round == 0 || traitor > 0 && k > 0 && round == 1 ->
			if
			:: link[traitor * N + k]!0
			:: link[traitor * N + k]!1
			:: link[traitor * N + k]!NOTHING
			fi
		:: else -> link[traitor * N + k]!NOTHING
		fi;
		k++
	:: k >= N -> k = 0; break
	od
}

inline allBut(who) {
	k = 0;
	do
	:: k < N -> if :: k != who -> ready[k]?_ :: else fi; k++
	:: else -> k = 0; break
	od
}

inline next() {
	k = 0;
	do
	:: k < N -> go!k; k++
	:: else -> k = 0; break
	od
}

init {
	byte k;
	atomic {
		if
		:: traitor = 0
		:: traitor = 1; order = 0
		:: traitor = 1; order = 1
		:: traitor = 2; order = 0
		:: traitor = 2; order = 1
		:: traitor = 3; order = 0
		:: traitor = 3; order = 1
#if N == 5
		:: traitor = 4; order = 0
		:: traitor = 4; order = 1
#endif
		fi;
#if N == 5
		run Process(0, FROM(1, 2, 3, 4, 0)); run Process(1, FROM(0, 2, 3, 4, 1));
		run Process(2, FROM(0, 1, 3, 4, 2)); run Process(3, FROM(0, 1, 2, 4, 3));
		run Process(4, FROM(0, 1, 2, 3, 4))
#else
		run Process(0, FROM(1, 2, 3, 0)); run Process(1, FROM(0, 2, 3, 1));
		run Process(2, FROM(0, 1, 3, 2)); run Process(3, FROM(0, 1, 2, 3))
#endif
	}
	next();
	atomic { tell(0) };
	atomic { EACH(THERE) -> allBut(N); lie(0) }
	atomic { EACH(HEARD) -> allBut(traitor) }
	next();
	atomic { tell(1) };
	atomic { EACH(THERE) -> allBut(N); lie(1) }
	atomic { EACH(HEARD) -> allBut(traitor) }
	next();
	/* Correct lieutenants agree, and on the order of a correct source. */
	k = 1;
	do
	:: k < N ->
		assert(k == traitor || traitor == 0 || value[k] == order);
		assert(traitor != 0 || value[k] == value[1]);
		k++
	:: else -> break
	od
}
