/* Every synchronous call, with its results and its errors. */
#include "check.h"

static char big[KVS_MAX_VALUE_LENGTH + 1];

static kvs_result put(char *text, const void *bytes, uint32_t length, kvs_store_type type) {
  kvs_key key = key_of(text);
  kvs_value value = {(void *)bytes, length, 0, 0};
  kvs_option_store option = {type, NULL};
  return kvs_store_kvp(space, &key, &value, &option);
}

static kvs_result get(char *text, char *buffer, uint32_t length, uint32_t offset, bool deletes, kvs_value *found) {
  kvs_key key = key_of(text);
  kvs_option_retrieve option = {deletes};
  kvs_value value = {buffer, length, 0, offset};
  kvs_result result = kvs_retrieve_kvp(space, &key, &option, &value);
  *found = value;
  return result;
}

static void devices(char *uri) {
  kvs_device info;
  kvs_device_handle other;
  uint64_t capacity = 0;
  uint32_t bytes = 1;
  float waf = -1;
  GIVES(KVS_ERR_PARAM_INVALID, kvs_open_device(NULL, &other));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_open_device(uri, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_open_device("", &other));
  GIVES(KVS_ERR_DEV_NOT_EXIST, kvs_open_device("/no/such/drive", &other));
  TRUE(strstr(kvs_last_error(), "/no/such/drive") != NULL);
  GIVES(KVS_ERR_SYS_IO, kvs_open_device(uri, &other));
  GIVES(KVS_SUCCESS, kvs_get_device_info(device, &info));
  GIVES(KVS_SUCCESS, kvs_get_device_capacity(device, &capacity));
  TRUE(info.capacity == capacity && capacity >= 1 << 20);
  TRUE(info.max_key_len == 255 && info.max_value_len == KVS_MAX_VALUE_LENGTH);
  GIVES(KVS_SUCCESS, kvs_get_device_utilization(device, &bytes));
  TRUE(bytes <= 10000);
  GIVES(KVS_SUCCESS, kvs_get_device_waf(device, &waf));
  TRUE(waf >= 0);
  GIVES(KVS_SUCCESS, kvs_get_min_key_length(device, &bytes));
  TRUE(bytes >= 1 && bytes <= 4);
  GIVES(KVS_SUCCESS, kvs_get_max_key_length(device, &bytes));
  TRUE(bytes == 255);
  GIVES(KVS_SUCCESS, kvs_get_min_value_length(device, &bytes));
  TRUE(bytes == 0);
  GIVES(KVS_SUCCESS, kvs_get_max_value_length(device, &bytes));
  TRUE(bytes == KVS_MAX_VALUE_LENGTH);
  GIVES(KVS_SUCCESS, kvs_get_optimal_value_length(device, &bytes));
  TRUE(bytes > 0);
  GIVES(KVS_ERR_PARAM_INVALID, kvs_get_device_capacity(device, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_get_device_capacity(NULL, &capacity));
  GIVES(KVS_ERR_DEV_NOT_OPENED, kvs_get_device_capacity((kvs_device_handle)(size_t)12345, &capacity));
}

static void key_spaces(void) {
  char text[64] = "another";
  char room[2][64];
  kvs_key_space_name name = {7, text}, listed[2] = {{64, room[0]}, {64, room[1]}};
  kvs_option_key_space none = {KVS_KEY_ORDER_NONE}, ascending = {KVS_KEY_ORDER_ASCEND};
  kvs_key_space info = {0};
  kvs_key_space_handle other;
  uint32_t count = 9;
  GIVES(KVS_ERR_OPTION_INVALID, kvs_create_key_space(device, &name, 0, ascending));
  GIVES(KVS_ERR_DEV_CAPACITY, kvs_create_key_space(device, &name, (uint64_t)1 << 60, none));
  GIVES(KVS_SUCCESS, kvs_create_key_space(device, &name, 1 << 16, none));
  GIVES(KVS_ERR_KS_EXIST, kvs_create_key_space(device, &name, 0, none));
  name.name_len = 3;
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &name, 0, none));
  name.name_len = 7;
  GIVES(KVS_ERR_KS_INDEX, kvs_list_key_spaces(device, 0, sizeof(listed), listed, &count));
  GIVES(KVS_ERR_KS_INDEX, kvs_list_key_spaces(device, 99, sizeof(listed), listed, &count));
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_list_key_spaces(device, 1, 0, listed, &count));
  listed[0].name_len = 2;
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_list_key_spaces(device, 1, sizeof(listed), listed, &count));
  listed[0].name_len = 64;
  GIVES(KVS_SUCCESS, kvs_list_key_spaces(device, 2, sizeof(listed), listed, &count));
  TRUE(count >= 1);
  GIVES(KVS_ERR_KS_OPEN, kvs_open_key_space(device, space_name, &other));
  GIVES(KVS_ERR_KS_NOT_EXIST, kvs_open_key_space(device, "missing", &other));
  GIVES(KVS_SUCCESS, kvs_open_key_space(device, text, &other));
  info.name = &listed[1];
  listed[1].name_len = 64;
  GIVES(KVS_SUCCESS, kvs_get_key_space_info(other, &info));
  TRUE(info.opened && info.capacity == 1 << 16 && info.count == 0 && info.free_size == 1 << 16);
  TRUE(strcmp(room[1], "another") == 0 && listed[1].name_len == 7);
  GIVES(KVS_SUCCESS, kvs_close_key_space(other));
  GIVES(KVS_ERR_KS_NOT_OPEN, kvs_close_key_space(other));
  GIVES(KVS_ERR_KS_NOT_OPEN, kvs_get_key_space_info(other, &info));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_close_key_space(NULL));
  GIVES(KVS_SUCCESS, kvs_delete_key_space(device, &name));
  GIVES(KVS_ERR_KS_NOT_EXIST, kvs_delete_key_space(device, &name));
}

static void pairs(void) {
  char buffer[2048];
  kvs_key key = key_of("cat.jpg"), empty = {"", 0};
  kvs_value found;
  kvs_option_store odd = {(kvs_store_type)77, NULL};
  kvs_association stream = {KVS_ASSOCIATION_STREAM, 1};
  kvs_option_store streamed = {KVS_STORE_POST, &stream};
  kvs_value value = {"meow", 4, 0, 0};
  kvs_kvp_info info = {0, (uint8_t *)buffer, 0};
  GIVES(KVS_ERR_KEY_NOT_EXIST, put("cat.jpg", "meow", 4, KVS_STORE_UPDATE_ONLY));
  GIVES(KVS_SUCCESS, put("cat.jpg", "meow", 4, KVS_STORE_NOOVERWRITE));
  GIVES(KVS_ERR_VALUE_UPDATE_NOT_ALLOWED, put("cat.jpg", "purr", 4, KVS_STORE_NOOVERWRITE));
  GIVES(KVS_SUCCESS, put("cat.jpg", " meow", 5, KVS_STORE_APPEND));
  GIVES(KVS_ERR_OPTION_INVALID, kvs_store_kvp(space, &key, &value, &odd));
  GIVES(KVS_ERR_OPTION_INVALID, kvs_store_kvp(space, &key, &value, &streamed));
  GIVES(KVS_ERR_KEY_LENGTH_INVALID, kvs_store_kvp(space, &empty, &value, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp(space, NULL, &value, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp(space, &key, NULL, NULL));
  GIVES(KVS_ERR_VALUE_LENGTH_INVALID, put("huge", big, sizeof(big), KVS_STORE_POST));
  GIVES(KVS_SUCCESS, get("cat.jpg", buffer, sizeof(buffer), 0, false, &found));
  TRUE(found.length == 9 && found.actual_value_size == 9 && memcmp(buffer, "meow meow", 9) == 0);
  GIVES(KVS_ERR_BUFFER_SMALL, get("cat.jpg", buffer, 4, 0, true, &found));
  TRUE(found.length == 4 && found.actual_value_size == 9);
  GIVES(KVS_ERR_VALUE_OFFSET_MISALIGNED, get("cat.jpg", buffer, sizeof(buffer), 3, false, &found));
  GIVES(KVS_ERR_VALUE_OFFSET_INVALID, get("cat.jpg", buffer, sizeof(buffer), 512, false, &found));
  GIVES(KVS_SUCCESS, kvs_get_kvp_info(space, &key, &info));
  TRUE(info.key_len == 7 && info.value_len == 9 && memcmp(buffer, "cat.jpg", 7) == 0);
  memset(big, 'b', 1000);
  GIVES(KVS_SUCCESS, put("long", big, 1000, KVS_STORE_POST));
  GIVES(KVS_SUCCESS, get("long", buffer, sizeof(buffer), 512, false, &found));
  TRUE(found.length == 488 && found.actual_value_size == 1000 && buffer[487] == 'b');
  GIVES(KVS_SUCCESS, get("cat.jpg", buffer, sizeof(buffer), 0, true, &found));
  GIVES(KVS_ERR_KEY_NOT_EXIST, get("cat.jpg", buffer, sizeof(buffer), 0, false, &found));
  GIVES(KVS_SUCCESS, put("none", NULL, 0, KVS_STORE_POST));
  GIVES(KVS_SUCCESS, get("none", NULL, 0, 0, false, &found));
  TRUE(found.actual_value_size == 0);
}

static void deletions(void) {
  kvs_key keys[9];
  char text[9][16];
  uint8_t bits[2] = {0xff, 0xff};
  kvs_exist_list list = {0, NULL, 2, bits};
  kvs_option_delete refuse = {true};
  kvs_key_group_filter group = {{0xff, 0xff, 0, 0}, {'g', 'r', 'x', 'y'}};
  for (int i = 0; i < 9; i++) {
    snprintf(text[i], 16, "gr%04d", i);
    keys[i] = key_of(text[i]);
    if (i % 2 == 0) GIVES(KVS_SUCCESS, put(text[i], "v", 1, KVS_STORE_POST));
  }
  GIVES(KVS_SUCCESS, kvs_exist_kv_pairs(space, 9, keys, &list));
  TRUE(bits[0] == 0x55 && bits[1] == 0x01 && list.length == 2 && list.num_keys == 9 && list.keys == keys);
  list.length = 1;
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_exist_kv_pairs(space, 9, keys, &list));
  list.length = 2;
  GIVES(KVS_ERR_PARAM_INVALID, kvs_exist_kv_pairs(space, 9, NULL, &list));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_exist_kv_pairs(space, 9, keys, NULL));
  GIVES(KVS_SUCCESS, kvs_delete_kvp(space, &keys[1], NULL));
  GIVES(KVS_ERR_KEY_NOT_EXIST, kvs_delete_kvp(space, &keys[1], &refuse));
  GIVES(KVS_SUCCESS, kvs_delete_kvp(space, &keys[0], &refuse));
  GIVES(KVS_SUCCESS, kvs_delete_key_group(space, &group));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_delete_key_group(space, NULL));
  GIVES(KVS_SUCCESS, kvs_exist_kv_pairs(space, 9, keys, &list));
  TRUE(bits[0] == 0 && bits[1] == 0);
}

/* Counts the entries of a list, and checks each against the stored data. */
static uint32_t entries(const kvs_iterator_list *list, bool has_values) {
  uint32_t count = 0, at = 0, length;
  while (at < list->size) {
    int number;
    memcpy(&length, list->it_list + at, 4);
    TRUE(length == 6 && sscanf((char *)list->it_list + at + 4, "it%04d", &number) == 1);
    at += 4 + length;
    if (has_values) {
      memcpy(&length, list->it_list + at, 4);
      TRUE(length == 4 && memcmp(list->it_list + at + 4, &number, 4) == 0);
      at += 4 + length;
    }
    count++;
  }
  TRUE(at == list->size && count == list->num_entries);
  return count;
}

static uint32_t iterate(kvs_iterator_type type, uint32_t size) {
  uint8_t *buffer = kvs_malloc(size, 4096);
  kvs_option_iterator option = {type};
  kvs_key_group_filter group = {{0xff, 0xff, 0, 0}, {'i', 't', 0, 0}};
  kvs_iterator_handle iterator, same;
  uint32_t count = 0, calls = 0;
  kvs_iterator_list list = {0, false, size, buffer};
  GIVES(KVS_SUCCESS, kvs_create_iterator(space, &option, &group, &iterator));
  GIVES(KVS_ERR_ITERATOR_OPEN, kvs_create_iterator(space, &option, &group, &same));
  for (; !list.end; calls++) {
    list.size = size;
    GIVES(KVS_SUCCESS, kvs_iterate_next(space, iterator, &list));
    count += entries(&list, type == KVS_ITERATOR_KEY_VALUE);
  }
  TRUE(calls > 1);
  list.size = 3;
  GIVES(KVS_SUCCESS, kvs_delete_iterator(space, iterator));
  GIVES(KVS_ERR_ITERATOR_NOT_EXIST, kvs_iterate_next(space, iterator, &list));
  GIVES(KVS_ERR_ITERATOR_NOT_EXIST, kvs_delete_iterator(space, iterator));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_create_iterator(space, &option, NULL, &iterator));
  kvs_free(buffer);
  return count;
}

static void iterators(void) {
  kvs_option_iterator odd = {(kvs_iterator_type)5};
  kvs_key_group_filter all = {{0}, {0}};
  kvs_iterator_handle iterator;
  for (int i = 0; i < 1000; i++) {
    char text[16];
    snprintf(text, sizeof(text), "it%04d", i);
    GIVES(KVS_SUCCESS, put(text, &i, 4, KVS_STORE_POST));
  }
  TRUE(iterate(KVS_ITERATOR_KEY, 4096) == 1000);
  TRUE(iterate(KVS_ITERATOR_KEY_VALUE, 512) == 1000);
  GIVES(KVS_ERR_OPTION_INVALID, kvs_create_iterator(space, &odd, &all, &iterator));
}

int main(int argc, char **argv) {
  char *aligned = kvs_zalloc(100, 4096);
  kvs_key_space_name name = {(uint32_t)strlen(space_name), space_name};
  kvs_key_space info = {0};
  TRUE(argc == 2 && aligned != NULL && (size_t)aligned % 4096 == 0 && aligned[99] == 0);
  kvs_free(aligned);
  kvs_free(NULL);
  TRUE(kvs_malloc(100, 3000) == NULL);
  set_up(argv[1]);
  devices(argv[1]);
  key_spaces();
  pairs();
  deletions();
  iterators();
  /* An open handle of a deleted key space gives an error. */
  GIVES(KVS_SUCCESS, kvs_delete_key_space(device, &name));
  GIVES(KVS_ERR_KS_NOT_EXIST, kvs_get_key_space_info(space, &info));
  GIVES(KVS_SUCCESS, kvs_close_device(device));
  GIVES(KVS_ERR_DEV_NOT_OPENED, kvs_close_device(device));
  GIVES(KVS_ERR_KS_NOT_OPEN, kvs_get_key_space_info(space, &info));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_close_device(NULL));
  return 0;
}
