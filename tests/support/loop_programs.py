"""Loops as users write them, which tests of several files run."""

import tensorflow as tf


def condition_of_data(x):
    while tf.reduce_sum(x) < 100:
        x = tf.abs(x) * 1.5
    return x


def numbers_of_the_device(x):
    """Each iteration writes a number that the device computes into host memory, as the loop of text generation does."""
    written = tf.zeros([6], tf.int32)
    for i in tf.range(6):
        x = tf.sin(x) + tf.cast(written[i // 2], tf.float32)
        written = tf.where(tf.equal(tf.range(6), i), 1 + tf.argmax(tf.reshape(x, [-1]), output_type=tf.int32), written)
    return x, written


def branches(x):
    for i in tf.range(6):
        if tf.equal(i % 2, 0):
            x += 1
        else:
            x *= 2
    return x


def ops_on_the_cpu(x, n=4):
    for i in tf.range(n):
        with tf.device("/cpu:0"):
            k = i * 3 + n
        x += tf.cast(k, tf.float32)
    return x
