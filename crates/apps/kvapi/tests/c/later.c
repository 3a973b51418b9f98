/* Every asynchronous call, from several threads, and the content after the device is opened again. */
#include "check.h"

#define THREADS 4
#define PAIRS 500

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ended, failures;
static kvs_postprocess_context last;

static void count(kvs_postprocess_context *context) {
  pthread_mutex_lock(&lock);
  ended++;
  failures += context->result != KVS_SUCCESS;
  last = *context;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void await(int count_min) {
  pthread_mutex_lock(&lock);
  while (ended < count_min) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

/* Stores another pair from the callback. */
static void again(kvs_postprocess_context *context) {
  kvs_key key = key_of("from the callback");
  kvs_value value = {"yes", 3, 0, 0};
  GIVES(KVS_SUCCESS, context->result);
  GIVES(KVS_SUCCESS, kvs_store_kvp_async(space, &key, &value, NULL, context->private1, NULL, count));
}

struct numbered {
  char text[16];
  int number;
  kvs_key key;
  kvs_value value;
};

static struct numbered all[THREADS][PAIRS];

static void *store(void *argument) {
  struct numbered *pairs = argument;
  for (int i = 0; i < PAIRS; i++) {
    struct numbered *pair = &pairs[i];
    pair->number = (int)(pair - &all[0][0]);
    snprintf(pair->text, sizeof(pair->text), "pair%08d", pair->number);
    pair->key = key_of(pair->text);
    pair->value = (kvs_value){&pair->number, sizeof(int), 0, 0};
    GIVES(KVS_SUCCESS, kvs_store_kvp_async(space, &pair->key, &pair->value, NULL, pair, NULL, count));
    /* It was copied. */
    pair->number = -1;
  }
  return NULL;
}

static void *retrieve(void *argument) {
  struct numbered *pairs = argument;
  for (int i = 0; i < PAIRS; i++) {
    struct numbered *pair = &pairs[i];
    kvs_option_retrieve option = {i % 10 == 0};
    pair->value = (kvs_value){&pair->number, sizeof(int), 0, 0};
    GIVES(KVS_SUCCESS, kvs_retrieve_kvp_async(space, &pair->key, &option, pair, NULL, &pair->value, count));
  }
  return NULL;
}

static void on_threads(void *(*work)(void *)) {
  pthread_t threads[THREADS];
  int before = ended;
  for (int i = 0; i < THREADS; i++) TRUE(pthread_create(&threads[i], NULL, work, all[i]) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  await(before + THREADS * PAIRS);
  GIVES(0, failures);
}

static void one(kvs_result submitted) {
  GIVES(KVS_SUCCESS, submitted);
}

static void others(void) {
  int before = ended, private1, private2;
  kvs_key key = key_of("pair00000001"), gone = key_of("pair00000000");
  kvs_key keys[2] = {key, gone};
  uint8_t bits = 0xff;
  kvs_exist_list list = {0, NULL, 1, &bits};
  kvs_option_delete refuse = {true};
  kvs_key_group_filter group = {{0xff, 0xff, 0xff, 0xff}, {'p', 'a', 'i', 'r'}};
  kvs_iterator_handle iterator;
  uint8_t buffer[KVS_ITERATOR_BUFFER_SIZE];
  kvs_iterator_list part = {0, false, sizeof(buffer), buffer};
  char small[2];
  kvs_option_retrieve deletes = {true};
  kvs_value value = {small, 2, 0, 0};
  one(kvs_exist_kv_pairs_async(space, 2, keys, &list, &private1, &private2, count));
  await(before + 1);
  TRUE(last.context == KVS_CMD_EXIST && last.key == keys && last.result_buffer.list == &list && bits == 1);
  TRUE(last.private1 == &private1 && last.private2 == &private2 && last.ks_hd == space);
  one(kvs_retrieve_kvp_async(space, &key, &deletes, NULL, NULL, &value, count));
  await(before + 2);
  TRUE(last.context == KVS_CMD_RETRIEVE && last.result == KVS_ERR_BUFFER_SMALL && value.actual_value_size == 4);
  TRUE(last.key == &key && last.value == &value && last.option == &deletes);
  one(kvs_delete_kvp_async(space, &key, &refuse, NULL, NULL, count));
  one(kvs_delete_kvp_async(space, &key, &refuse, NULL, NULL, count));
  await(before + 4);
  TRUE(last.context == KVS_CMD_DELETE && last.result == KVS_ERR_KEY_NOT_EXIST);
  GIVES(KVS_SUCCESS, kvs_create_iterator(space, NULL, &group, &iterator));
  one(kvs_iterate_next_async(space, iterator, &part, NULL, NULL, count));
  await(before + 5);
  TRUE(last.context == KVS_CMD_ITER_NEXT && last.result == KVS_SUCCESS && last.iter_hd == iterator);
  TRUE(part.num_entries == THREADS * PAIRS * 9 / 10 - 1 && part.size == part.num_entries * 16 && part.end);
  one(kvs_delete_key_group_async(space, &group, NULL, NULL, count));
  await(before + 6);
  TRUE(last.context == KVS_CMD_DELETE_GROUP && last.result == KVS_SUCCESS);
  one(kvs_store_kvp_async(space, &key, &value, NULL, &private1, NULL, again));
  await(before + 7);
  TRUE(last.context == KVS_CMD_STORE && last.private1 == &private1 && last.result == KVS_SUCCESS);
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp_async(space, &key, &value, NULL, NULL, NULL, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp_async(space, NULL, &value, NULL, NULL, NULL, count));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_iterate_next_async(space, iterator, NULL, NULL, NULL, count));
}

int main(int argc, char **argv) {
  kvs_key key = key_of("from the callback");
  char buffer[8];
  kvs_value value = {buffer, sizeof(buffer), 0, 0};
  TRUE(argc == 2);
  set_up(argv[1]);
  on_threads(store);
  on_threads(retrieve);
  for (int i = 0; i < THREADS * PAIRS; i++) {
    const struct numbered *pair = &all[i / PAIRS][i % PAIRS];
    GIVES(i, pair->number);
    GIVES(4, pair->value.length);
  }
  others();
  int before = ended;
  /* Closing waits for submitted commands. */
  for (int i = 0; i < 100; i++) one(kvs_store_kvp_async(space, &key, &value, NULL, NULL, NULL, count));
  GIVES(KVS_SUCCESS, kvs_close_device(device));
  TRUE(ended == before + 100);
  GIVES(KVS_ERR_KS_NOT_OPEN, kvs_store_kvp_async(space, &key, &value, NULL, NULL, NULL, count));
  if (strncmp(argv[1], "/dev/kvemul", 11) != 0) {
    GIVES(KVS_SUCCESS, kvs_open_device(argv[1], &device));
    GIVES(KVS_SUCCESS, kvs_open_key_space(device, space_name, &space));
    value.length = sizeof(buffer);
    GIVES(KVS_SUCCESS, kvs_retrieve_kvp(space, &key, NULL, &value));
    TRUE(value.length == sizeof(buffer));
    GIVES(KVS_SUCCESS, kvs_close_device(device));
  }
  return 0;
}
