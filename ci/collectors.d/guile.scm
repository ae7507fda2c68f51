;; Threads build lists and check them, collect, and wait for each other.
(use-modules (ice-9 threads))

(define end (+ (get-internal-real-time) internal-time-units-per-second))
(define mutex (make-mutex))
(define changed (make-condition-variable))

(define (over?) (>= (get-internal-real-time) end))
(define (build n) (if (= n 0) '() (cons n (build (- n 1)))))
(define (check numbers)
  (unless (= (apply + numbers) 20100)
    (display "a list that is in use was freed\n")
    (primitive-_exit 1)))

(define (work seed)
  (unless (over?)
    (let ((held (build 200)))
      (case (modulo seed 7)
        ((0) (usleep 200))
        ((1) (check (join-thread (begin-thread (build 200)))))
        ((2) (gc))
        ((3) (with-mutex mutex (broadcast-condition-variable changed))))
      (check held)
      (work (+ seed 1)))))

(define (wait-for-change)
  (unless (over?)
    (let ((held (build 200)))
      (with-mutex mutex
        (wait-condition-variable changed mutex (+ (current-time) 1)))
      (check held)
      (wait-for-change))))

(define threads
  (append (map (lambda (i) (begin-thread (work i))) (iota 20))
          (map (lambda (i) (begin-thread (wait-for-change))) (iota 8))))
(for-each join-thread threads)
(display "ok\n")
